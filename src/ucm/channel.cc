#include "ucm/channel.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/log.h"

namespace verbena::ucm {

Result<Channel::Opened> Channel::open(int flags) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return tl::make_unexpected(device::system_error("descriptors for an event channel of rdma_cm"));
  }
  transport::Fd own(ends[0]);
  transport::Fd theirs(ends[1]);
  struct stat status {};
  if (!own || !theirs || ::fstat(theirs.get(), &status) != 0) {
    return tl::make_unexpected(device::system_error("descriptors for an event channel of rdma_cm"));
  }
  const int given = ::fcntl(theirs.get(), (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (given < 0) return tl::make_unexpected(device::system_error("descriptors for an event channel of rdma_cm"));
  if ((flags & O_NONBLOCK) != 0) ::fcntl(given, F_SETFL, O_NONBLOCK | O_RDWR);
  return Opened{std::shared_ptr<Channel>(new Channel(std::move(own), status.st_ino)), given};
}

bool Channel::is_closed() noexcept {
  char byte = 0;
  const auto received = ::recv(own_.get(), &byte, 1, MSG_DONTWAIT);
  return received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
}

void Channel::signal() noexcept {
  if (signalled_ || events_.empty()) return;
  const char byte = 1;
  signalled_ = ::send(own_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void Channel::post(const WaitingEvent& event) {
  events_.push_back(event);
  signal();
}

std::optional<WaitingEvent> Channel::take() {
  signalled_ = false;
  if (events_.empty()) return std::nullopt;
  const WaitingEvent first = events_.front();
  events_.pop_front();
  signal();
  return first;
}

void Channel::give_back(const WaitingEvent& event) {
  events_.push_front(event);
  signal();
}

void Channel::settle(int fd) noexcept {
  signal();
  char byte = 0;
  if (signalled_ && events_.empty() && ::recv(fd, &byte, 1, MSG_DONTWAIT) == 1) signalled_ = false;
}

int Channel::take_turn(int fd) noexcept {
  char byte = 0;
  const auto received = ::recv(fd, &byte, 1, 0);
  if (received == 1) return 0;
  return received == 0 ? EBADF : errno;
}

}  // namespace verbena::ucm
