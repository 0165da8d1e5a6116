// Lets a call that makes a file larger fail with EFBIG where the process has a limit on file sizes (ulimit -f), in
// place of the signal SIGXFSZ, which would end the application.
#pragma once

#include <csignal>
#include <ctime>

#include <pthread.h>

namespace verbena::transport {

// While it lives, the signal does not reach this thread; one that came meanwhile for this thread is thrown away.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ) != 1) {
      const timespec at_once{0, 0};
      sigtimedwait(&signal_, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace verbena::transport
