#include "ah/work_pool.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <pthread.h>

namespace verbena::ah {

WorkPool::WorkPool(unsigned threads) : later_limit_(std::max(1U, threads / 2)) {
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
    (lane == Lane::kFirst ? first_ : later_).push_back(std::move(work));
  }
  work_.notify_one();
}

void WorkPool::stop() {
  std::deque<std::function<void()>> dropped_first;
  std::deque<std::function<void()>> dropped_later;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped_first.swap(first_);
    dropped_later.swap(later_);
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

bool WorkPool::has_work() const {
  return !first_.empty() || (!later_.empty() && running_later_ < later_limit_);
}

std::function<void()> WorkPool::take(bool& later) {
  later = first_.empty();
  std::deque<std::function<void()>>& lane = later ? later_ : first_;
  std::function<void()> work = std::move(lane.front());
  lane.pop_front();
  return work;
}

void WorkPool::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "verbena-ah");
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || has_work(); });
    if (stopping_) return;
    bool later = false;
    std::function<void()> work = take(later);
    ++running_;
    running_later_ += later ? 1U : 0U;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    --running_;
    running_later_ -= later ? 1U : 0U;
    if (running_ == 0) idle_.notify_all();
    if (has_work()) work_.notify_one();
  }
}

}  // namespace verbena::ah
