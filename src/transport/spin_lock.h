// A lock for sections of a few hundred nanoseconds, cheaper than a mutex where nobody else wants it.
#pragma once

#include <atomic>

namespace verbena::transport {

// Who waits long lets others run, so that a holder without a processor gets one.
//
// Thread-safety: any thread may call anything. Satisfies Lockable.
class SpinLock {
 public:
  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) wait();
  }
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  void wait() noexcept;

  std::atomic<bool> taken_{false};
};

}  // namespace verbena::transport
