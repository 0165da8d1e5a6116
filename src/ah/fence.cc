#include "ah/fence.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbena::ah {

namespace {

bool membarrier(int command) noexcept {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool has_membarrier() noexcept {
  static const bool there = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return there;
}

bool heavy_fence(bool with_membarrier) noexcept {
  if (with_membarrier) {
    // The senders have only compiler barriers: a fence here would order nothing of theirs. The call may fail for want
    // of memory for a moment, the slow one not for that.
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) || membarrier(MEMBARRIER_CMD_GLOBAL)) return true;
      ::sched_yield();
    }
    return false;
  }
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  return true;
}

}  // namespace verbena::ah
