// Read-copy-update, as this room uses it: readers on the data path bracket what they look at; whoever takes something
// out of sight waits for a grace period, or leaves the freeing to later.
#pragma once

#include <urcu/urcu-bp.h>

namespace verbena::device {

// Thread-safety: any thread, nested as deep as need be; no registration.
class RcuReadSection {
 public:
  RcuReadSection() noexcept { urcu_bp_read_lock(); }
  ~RcuReadSection() { urcu_bp_read_unlock(); }
  RcuReadSection(const RcuReadSection&) = delete;
  RcuReadSection& operator=(const RcuReadSection&) = delete;
};

// Waits until every read section begun before has ended. Never from inside one.
inline void wait_for_readers() noexcept {
  urcu_bp_synchronize_rcu();
}

}  // namespace verbena::device
