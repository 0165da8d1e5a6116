#include "transport/spin_lock.h"

#include <thread>

namespace verbena::transport {
namespace {

constexpr int kSpinsBeforeYield = 64;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void SpinLock::wait() noexcept {
  for (int spins = 0;;) {
    if (!taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire)) return;
    if (++spins < kSpinsBeforeYield) {
      pause_briefly();
    } else {
      std::this_thread::yield();  // the holder may not be running
    }
  }
}

}  // namespace verbena::transport
