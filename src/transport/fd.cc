#include "transport/fd.h"

#include <unistd.h>

namespace verbena::transport {

void Fd::reset() noexcept {
  if (fd_ < 0) return;
  if (set_ != nullptr) set_->remove(fd_);
  ::close(std::exchange(fd_, -1));
  set_ = nullptr;
}

}  // namespace verbena::transport
