#include "device/helper.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/clock.h"
#include "transport/system_error.h"

namespace verbena::device {
namespace {

constexpr std::int64_t kForEver = -1;

Status add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  const int error = errno;
  return failure(ErrorCode::kExhausted, fmt::format("epoll_ctl: {}", transport::system_words(error)), error);
}

}  // namespace

Status Helper::start() {
  control_epoll_ = transport::Fd(epoll_create1(EPOLL_CLOEXEC));
  all_epoll_ = transport::Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = transport::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!control_epoll_ || !all_epoll_ || !wake_) {
    const int error = errno;
    return failure(ErrorCode::kExhausted,
                   fmt::format("no descriptors for the helper thread: {}", transport::system_words(error)), error);
  }
  if (auto added = add(control_epoll_.get(), wake_.get()); !added) return added;
  if (auto added = add(all_epoll_.get(), control_epoll_.get()); !added) return added;

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it: signals are the application's
  Status result;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "verbena");
  } catch (const std::system_error& error) {
    result = failure(ErrorCode::kExhausted, fmt::format("no helper thread: {}; see ulimit -u", error.what()), EAGAIN);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

void Helper::stop() noexcept {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_relaxed);
  wake();
  thread_.join();
}

Status Helper::add_control(int fd) {
  return add(control_epoll_.get(), fd);
}
Status Helper::add_packets(int fd) {
  return add(all_epoll_.get(), fd);
}
void Helper::remove_packets(int fd) noexcept {
  epoll_ctl(all_epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Helper::wake() noexcept {
  const std::uint64_t one = 1;
  // Fails only where the count is full, and then the helper is awake anyway.
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
}

void Helper::begin_watching() noexcept {
  empty_polls_.store(0, std::memory_order_relaxed);
  polled_.store(true, std::memory_order_relaxed);
  if (!watching_.exchange(true, std::memory_order_relaxed)) wake();
}

void Helper::on_arm() noexcept {
  empty_polls_.store(0, std::memory_order_relaxed);
  if (watching_.load(std::memory_order_relaxed) && watching_.exchange(false, std::memory_order_relaxed)) wake();
}

void Helper::wait(int epoll, std::int64_t timeout_ns) noexcept {
  std::array<epoll_event, 4> events;
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int count =
      epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), timeout_ns < 0 ? nullptr : &timeout, nullptr);
  if (count < 0 && errno == ENOSYS) {  // before Linux 5.11
    const auto milliseconds = timeout_ns < 0 ? -1 : static_cast<int>((timeout_ns + 999'999) / 1'000'000);
    epoll_wait(epoll, events.data(), static_cast<int>(events.size()), milliseconds);
  }
  std::uint64_t wakes = 0;
  [[maybe_unused]] const auto got = read(wake_.get(), &wakes, sizeof wakes);
}

void Helper::run() noexcept {
  while (!stop_.load(std::memory_order_relaxed)) {
    if (watching_.load(std::memory_order_relaxed)) {
      watch();
    } else {
      help();
    }
  }
}

void Helper::watch() noexcept {
  work_.disarm_doorbells();
  while (watching_.load(std::memory_order_relaxed) && !stop_.load(std::memory_order_relaxed)) {
    polled_.store(false, std::memory_order_relaxed);
    const Instant begin = now();
    const Duration tick = work_.tick();
    wait(control_epoll_.get(), tick.count());
    work_.serve_control();
    work_.relieve();
    const bool whole_tick = now() - begin >= tick;
    if (whole_tick && !polled_.load(std::memory_order_relaxed)) watching_.store(false, std::memory_order_relaxed);
  }
}

void Helper::help() noexcept {
  while (work_.take_in()) {
  }
  if (work_.arm_doorbells()) {
    const auto due = work_.next_timeout();
    // Packets that are held back keep their sockets readable.
    const int epoll = work_.held_back() ? control_epoll_.get() : all_epoll_.get();
    wait(epoll, due ? std::max<std::int64_t>(0, due->ns - now().ns) : kForEver);
  }
  work_.disarm_doorbells();
  work_.serve_control();
}

void Helper::abandon() noexcept {
  thread_.detach();  // it does not exist here
  control_epoll_.reset();
  all_epoll_.reset();
  wake_.reset();
}

}  // namespace verbena::device
