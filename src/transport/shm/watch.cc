#include "transport/shm/watch.h"

#include <sys/epoll.h>

namespace verbena::transport {
namespace {

bool watch(int epoll, int fd, WatchTag tag, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag.packed();
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

bool watch_socket(int epoll, int fd, WatchTag tag) noexcept {
  return watch(epoll, fd, tag, EPOLLIN | EPOLLRDHUP);
}

bool watch_doorbell(int epoll, int fd, WatchTag tag) noexcept {
  return watch(epoll, fd, tag, EPOLLIN | EPOLLET);
}

void unwatch(int epoll, int fd) noexcept {
  ::epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace verbena::transport
