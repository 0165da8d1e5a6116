#include "ah/work_pool.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <pthread.h>

namespace verbena::ah {

namespace {

// What failed before has its turn after so many of the others.
constexpr unsigned kMostPassedOver = 8;

bool has_failed(Lane lane) {
  return lane == Lane::kRestore || lane == Lane::kLater;
}

}  // namespace

WorkPool::WorkPool(unsigned threads)
    : failed_limit_(std::max(1U, threads / 2)), slow_limit_(std::max(2U, threads) - 1) {
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    stop();
    join();
    throw;
  }
}

WorkPool::~WorkPool() {
  stop();
  join();
}

void WorkPool::submit(Lane lane, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    line(lane).push_back(std::move(work));
  }
  work_.notify_one();
}

void WorkPool::submit_at(Deadline::Clock::time_point when, Lane lane, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    delayed_.emplace(when, Delayed{lane, std::move(work)});
  }
  work_.notify_one();
}

void WorkPool::stop() {
  decltype(lines_) dropped;
  decltype(delayed_) dropped_delayed;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(lines_);
    dropped_delayed.swap(delayed_);
  }
  work_.notify_all();
}

bool WorkPool::wait_idle(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, deadline.when(), [this] { return running_ == 0; });
}

void WorkPool::join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkPool::take_due() {
  const auto now = Deadline::Clock::now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    Delayed due = std::move(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    line(due.lane).push_back(std::move(due.work));
  }
}

// Replacements get the next free thread while none is at work for them, and where there is but one thread, every second
// turn; what failed before, when it was passed over often enough.
std::optional<Lane> WorkPool::next_lane() const {
  if (!line(Lane::kUrgent).empty()) return Lane::kUrgent;
  const bool slow_may = running_replace_ + running_failed_ < slow_limit_;
  const std::optional<Lane> failed = slow_may && running_failed_ < failed_limit_ ? next_of_failed() : std::nullopt;
  if (failed && passed_over_ >= kMostPassedOver) return failed;
  const bool replace_may = slow_may && !line(Lane::kReplace).empty();
  if (line(Lane::kFirst).empty()) return replace_may ? std::optional(Lane::kReplace) : failed;
  return replace_may && running_replace_ == 0 && !replace_had_turn_ ? Lane::kReplace : Lane::kFirst;
}

std::optional<Lane> WorkPool::next_of_failed() const {
  const bool restore = !line(Lane::kRestore).empty();
  const bool later = !line(Lane::kLater).empty();
  if (!restore && !later) return std::nullopt;
  return later && (!restore || restore_had_turn_) ? Lane::kLater : Lane::kRestore;
}

WorkPool::Work WorkPool::take(Lane lane) {
  if (has_failed(lane)) {
    passed_over_ = 0;
    restore_had_turn_ = lane == Lane::kRestore;
  } else if (lane != Lane::kUrgent && next_of_failed()) {
    ++passed_over_;
  }
  Work work = std::move(line(lane).front());
  line(lane).pop_front();
  if (lane == Lane::kFirst || lane == Lane::kReplace) replace_had_turn_ = lane == Lane::kReplace;
  return work;
}

void WorkPool::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "verbena-ah");
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) return;
    take_due();
    const std::optional<Lane> lane = next_lane();
    if (!lane && delayed_.empty()) {
      work_.wait(lock);
    } else if (!lane) {
      const auto due = delayed_.begin()->first;
      work_.wait_until(lock, due);
    }
    if (!lane) continue;
    Work work = take(*lane);
    unsigned* const kind = has_failed(*lane) ? &running_failed_ : *lane == Lane::kReplace ? &running_replace_ : nullptr;
    ++running_;
    if (kind != nullptr) ++*kind;
    if (next_lane() || !delayed_.empty()) work_.notify_one();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    --running_;
    if (kind != nullptr) --*kind;
    if (running_ == 0) idle_.notify_all();
  }
}

}  // namespace verbena::ah
