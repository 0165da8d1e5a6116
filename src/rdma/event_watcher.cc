#include "rdma/event_watcher.h"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma/verbs_error.h"

namespace verbena::rdma {

namespace {

// A context has a place from before its watcher begins until after it has ended: an expired one is about to end.
struct Registry {
  std::mutex mutex;
  std::condition_variable gone;                                  // a place was given up
  std::map<ibv_context*, std::weak_ptr<EventWatcher>> watchers;  // guarded by mutex
};

// Never destroyed: a watcher may outlive the end of main.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Result<std::shared_ptr<EventWatcher>> EventWatcher::of(ibv_context* context) {
  auto& watchers = registry().watchers;
  std::unique_lock lock(registry().mutex);
  for (auto at = watchers.find(context); at != watchers.end(); at = watchers.find(context)) {
    if (std::shared_ptr<EventWatcher> there = at->second.lock()) return there;
    registry().gone.wait(lock);
  }
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return verbs_failure("eventfd", "of the event watcher", errno);
  const auto place = watchers.try_emplace(context).first;
  try {
    auto watcher = std::make_shared<EventWatcher>(context, wake_fd);
    place->second = watcher;
    return watcher;
  } catch (const std::system_error& error) {
    watchers.erase(place);
    ::close(wake_fd);
    return verbs_failure("thread", "of the event watcher", error.code().value());
  } catch (...) {
    watchers.erase(place);
    ::close(wake_fd);
    throw;
  }
}

EventWatcher::EventWatcher(ibv_context* context, int wake_fd)
    : context_(context), wake_fd_(wake_fd), old_flags_(::fcntl(context->async_fd, F_GETFL)) {
  if (old_flags_ >= 0) ::fcntl(context_->async_fd, F_SETFL, old_flags_ | O_NONBLOCK);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    give_back_stream();
    throw;
  }
}

// As the application had it: it may read the events itself from now on.
void EventWatcher::give_back_stream() {
  if (old_flags_ >= 0) ::fcntl(context_->async_fd, F_SETFL, old_flags_);
}

EventWatcher::~EventWatcher() {
  const std::uint64_t one = 1;
  while (::write(wake_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(wake_fd_);
  // Only then may the next one of this context begin: it reads the flags, and the stream has one reader.
  const std::lock_guard lock(registry().mutex);
  give_back_stream();
  registry().watchers.erase(context_);
  registry().gone.notify_all();
}

EventWatcher::Ticket EventWatcher::subscribe(Subscriber subscriber) {
  const std::lock_guard lock(mutex_);
  subscribers_.emplace(next_, std::move(subscriber));
  return next_++;
}

void EventWatcher::unsubscribe(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  subscribers_.erase(ticket);
}

void EventWatcher::run() {
  block_signals();
  pthread_setname_np(pthread_self(), "verbena-events");
  std::array<pollfd, 2> entries{
      {{.fd = wake_fd_, .events = POLLIN, .revents = 0}, {.fd = context_->async_fd, .events = POLLIN, .revents = 0}}};
  for (;;) {
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;  // EINTR; no other error is possible here
    if (entries[0].revents != 0) return;
    if (entries[1].revents != 0 && !deliver_one()) entries[1].fd = -1;
  }
}

bool EventWatcher::deliver_one() {
  ibv_async_event event{};
  if (ibv_get_async_event(context_, &event) != 0) return errno == EAGAIN || errno == EINTR;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [ticket, subscriber] : subscribers_) subscriber(event);
  }
  ibv_ack_async_event(&event);
  return true;
}

}  // namespace verbena::rdma
