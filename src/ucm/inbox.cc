// The thread of the service: what arrives, what is closed, and time. And what leaves.
#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/clock.h"
#include "device/log.h"
#include "host/management_message.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

constexpr int kMostReady = 16;
constexpr int kMessagesATurn = 64;
constexpr int kForEver = -1;

// Rounded up: what is due must be due when the sleep is over.
int milliseconds_until(const std::optional<Instant>& at) noexcept {
  if (!at) return kForEver;
  const auto wait = *at - device::now();
  if (wait <= Duration::zero()) return 0;
  return static_cast<int>(std::min<std::int64_t>((wait.count() + 999'999) / 1'000'000, 3'600'000));
}

}  // namespace

Status Service::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return tl::make_unexpected(device::system_error("a watch on a descriptor of rdma_cm"));
}

// The thread looks at the time anew where it would sleep beyond the machine's next deadline.
void Service::wake_in_time() {
  const auto next = machine_->next_timeout();
  if (!next || (sleeps_until_ && *sleeps_until_ <= *next)) return;
  sleeps_until_ = next;
  const std::uint64_t one = 1;
  // Fails only where the count is full, and then the thread is awake anyway.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Service::run() noexcept {
  std::array<epoll_event, kMostReady> ready;
  const int epoll = epoll_.get();
  int sleep = 0;
  for (;;) {
    const int count = ::epoll_wait(epoll, ready.data(), kMostReady, sleep);
    if (count < 0 && errno != EINTR) return;
    try {
      const std::lock_guard guard(mutex_);
      for (int i = 0; i < count; ++i) take_in(ready[static_cast<std::size_t>(i)].data.fd);
      machine_->on_timeout(device::now());
      pump();
      sleeps_until_ = machine_->next_timeout();
      sleep = milliseconds_until(sleeps_until_);
    } catch (const std::exception& error) {
      device::log(device::Severity::kError, fmt::format("rdma_cm: {}", error.what()));
    }
  }
}

void Service::take_in(int fd) {
  if (fd == wake_.get()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(fd, &count, sizeof count);
    return;
  }
  const auto end = channel_ends_.find(fd);
  if (end == channel_ends_.end()) {
    take_messages(fd);
    return;
  }
  const auto channel = channel_of(end->second);
  if (channel != nullptr && channel->is_closed()) close_channel(channel);
}

// A claim may have been given up since, and its number be a descriptor of the program's.
bool Service::is_ours(int fd) const {
  return fd == inbox_.get() || std::any_of(identifiers_.begin(), identifiers_.end(), [fd](const auto& entry) {
           return entry.second->claim != nullptr && entry.second->claim->fd() == fd;
         });
}

void Service::take_messages(int fd) {
  std::array<std::byte, host::kManagementMessageBytes + 1> bytes;
  for (int i = 0; i < kMessagesATurn && is_ours(fd); ++i) {
    const auto size = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0) return;  // nothing more, or closed since
    const auto message = host::decode_management_message(std::span(bytes).first(static_cast<std::size_t>(size)));
    if (!message) continue;
    const cm::Path path{message->destination, message->source, message->traffic_class};
    machine_->on_message(path, message->datagram, device::now());
    pump();
  }
}

// Whatever a call to the machine gave, until there is nothing more.
void Service::pump() {
  if (!machine_) return;
  for (bool more = true; more;) {
    more = false;
    while (auto event = machine_->poll_event()) {
      on_event(*event);
      more = true;
    }
    while (auto transmission = machine_->poll_transmit()) {
      transmit(*transmission);
      more = true;
    }
  }
}

void Service::transmit(const cm::Transmission& transmission) {
  if (!runtime_) return;
  const host::ManagementMessage message{.source = transmission.path.local,
                                        .destination = transmission.path.remote,
                                        .traffic_class = transmission.path.traffic_class,
                                        .datagram = transmission.mad};
  const auto answer = runtime_->send_management(message);
  if (!answer) return;
  machine_->on_message({answer->destination, answer->source, answer->traffic_class}, answer->datagram, device::now());
}

}  // namespace verbena::ucm
