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

void heavy_fence(bool with_membarrier) noexcept {
  if (with_membarrier) {
    // The senders have only compiler barriers: a fence here would order nothing of theirs. The call may fail for want
    // of memory, the slow one not for that; until one succeeds nothing may be freed.
    while (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_GLOBAL)) ::sched_yield();
    return;
  }
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace verbena::ah
