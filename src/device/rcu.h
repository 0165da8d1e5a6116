// Read-copy-update, as this room uses it: readers on the data path bracket what they look at; whoever takes something
// out of sight waits for a grace period, or leaves the freeing to later.
#pragma once

#include <urcu/urcu-bp.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace verbena::device {

// ThreadSanitizer does not see into liburcu: what a grace period orders is told to it here.
#ifdef __SANITIZE_THREAD__
inline char rcu_order;
inline void tell_sanitizer_reader_ended() noexcept {
  __tsan_release(&rcu_order);
}
inline void tell_sanitizer_grace_period_ended() noexcept {
  __tsan_acquire(&rcu_order);
}
#else
inline void tell_sanitizer_reader_ended() noexcept {}
inline void tell_sanitizer_grace_period_ended() noexcept {}
#endif

// Thread-safety: any thread, nested as deep as need be; no registration.
class RcuReadSection {
 public:
  RcuReadSection() noexcept { urcu_bp_read_lock(); }
  ~RcuReadSection() {
    tell_sanitizer_reader_ended();
    urcu_bp_read_unlock();
  }
  RcuReadSection(const RcuReadSection&) = delete;
  RcuReadSection& operator=(const RcuReadSection&) = delete;
};

// Waits until every read section begun before has ended. Never from inside one.
inline void wait_for_readers() noexcept {
  urcu_bp_synchronize_rcu();
  tell_sanitizer_grace_period_ended();
}

}  // namespace verbena::device
