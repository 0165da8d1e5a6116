// A lock for a few instructions: no system call, no fairness. Satisfies Lockable.
#pragma once

#include <atomic>

namespace verbena::device {

class SpinLock {
 public:
  void lock() noexcept {
    while (!try_lock()) {
      while (held_.load(std::memory_order_relaxed)) __builtin_ia32_pause();
    }
  }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};  // acquire on taking pairs with release on giving back
};

}  // namespace verbena::device
