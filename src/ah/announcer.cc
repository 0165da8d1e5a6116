#include "ah/announcer.h"

#include <csignal>
#include <utility>
#include <vector>

#include <pthread.h>

namespace verbena::ah {

void Announcer::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

Announcer::Ticket Announcer::subscribe(AhSubscriber subscriber) {
  const std::lock_guard lock(mutex_);
  if (!stopping_) start();
  subscribers_.emplace(next_, std::make_shared<const AhSubscriber>(std::move(subscriber)));
  subscribed_.store(true, std::memory_order_relaxed);
  return next_++;
}

void Announcer::unsubscribe(Ticket ticket) {
  std::unique_lock lock(mutex_);
  subscribers_.erase(ticket);
  subscribed_.store(!subscribers_.empty(), std::memory_order_relaxed);
  if (thread_id_ == std::this_thread::get_id()) return;
  delivered_.wait(lock, [this, seen = deliveries_] { return !delivering_ || deliveries_ != seen; });
}

void Announcer::announce(AhEvent event) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || subscribers_.empty()) return;
    if (events_waiting_ >= kMostWaiting) {
      ++dropped_;
      return;
    }
    add_gap(event.when);
    waiting_.push_back({std::move(event), {}});
    ++events_waiting_;
  }
  wake_.notify_one();
}

void Announcer::add_gap(std::chrono::steady_clock::time_point when) {
  if (dropped_ == 0) return;
  AhEvent gap;
  gap.kind = AhEvent::Kind::kDropped;
  gap.count = std::exchange(dropped_, 0);
  gap.when = when;
  waiting_.push_back({std::move(gap), {}});
  ++events_waiting_;
}

void Announcer::drop_events() {
  for (const Waiting& one : waiting_) {
    if (!one.call) dropped_ += one.event.kind == AhEvent::Kind::kDropped ? one.event.count : 1;
  }
  std::erase_if(waiting_, [](const Waiting& one) { return !one.call; });
  events_waiting_ = 0;
}

void Announcer::call(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      waiting_.push_back({{}, std::exchange(what, nullptr)});
    }
  }
  if (what) {
    what();
  } else {
    wake_.notify_one();
  }
}

void Announcer::prepare() {
  const std::lock_guard lock(mutex_);
  if (!stopping_) start();
}

void Announcer::deliver(std::unique_lock<std::mutex>& lock) {
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  std::vector<std::shared_ptr<const AhSubscriber>> subscribers;
  if (!next.call) {
    --events_waiting_;
    for (const auto& [ticket, subscriber] : subscribers_) subscribers.push_back(subscriber);
  }
  delivering_ = true;
  ++deliveries_;
  lock.unlock();
  if (next.call) next.call();
  for (const auto& subscriber : subscribers) (*subscriber)(next.event);
  next = {};
  subscribers.clear();
  lock.lock();
  delivering_ = false;
  delivered_.notify_all();
}

void Announcer::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "verbena-tell");
  std::unique_lock lock(mutex_);
  thread_id_ = std::this_thread::get_id();
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto now = std::chrono::steady_clock::now();
    if (stopping_ && now >= stop_by_ && events_waiting_ > 1) drop_events();
    if (!waiting_.empty()) deliver(lock);
    if (events_waiting_ == 0) add_gap(now);
  }
}

void Announcer::stop() {
  std::thread ending;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_by_ = std::chrono::steady_clock::now() + kStopPatience;
    if (thread_.joinable() && thread_id_ != std::this_thread::get_id()) ending = std::move(thread_);
  }
  wake_.notify_all();
  if (ending.joinable()) ending.join();
}

}  // namespace verbena::ah
