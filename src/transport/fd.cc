#include "transport/fd.h"

#include <fcntl.h>
#include <unistd.h>

namespace verbena::transport {

int Fd::beyond_standard(int fd) noexcept {
  if (fd < STDIN_FILENO || fd > STDERR_FILENO) return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) return fd;
  ::close(fd);
  return other;
}

void Fd::reset() noexcept {
  if (fd_ < 0) return;
  if (set_ != nullptr) set_->remove(fd_);
  ::close(std::exchange(fd_, -1));
  set_ = nullptr;
}

}  // namespace verbena::transport
