// No thread cancellation while this lives. Posting and polling are no cancellation points on hardware, and an unwinding
// that began in a system call of ours would meet a noexcept function and end the process.
#pragma once

#include <pthread.h>

namespace verbena::transport {

class NoCancel {
 public:
  NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace verbena::transport
