// A few threads that do what may block: resolve, create, destroy.
//
// Two lanes. What somebody waits for goes first; what failed before, or replaces something that still serves, goes into
// the other, which never takes more than half of the threads: dead peers do not hold up the living.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "verbena/deadline.h"

namespace verbena::ah {

enum class Lane { kFirst, kLater };

// Thread-safety: any thread; join() by one.
// Ownership:     owns its threads. What is queued when it stops is dropped.
// Errors:        the constructor throws std::system_error where no thread can be made.
class WorkPool {
 public:
  explicit WorkPool(unsigned threads);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  ~WorkPool();

  // Ignored after stop().
  void submit(Lane lane, std::function<void()> work);
  // Takes nothing more, drops what is queued.
  void stop();
  // True where nothing is running; false at the deadline. Requires: stop() before it.
  bool wait_idle(Deadline deadline);
  void join();

 private:
  void run();
  // What to do next. Requires: the mutex.
  bool has_work() const;
  std::function<void()> take(bool& later);

  const unsigned later_limit_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> first_;  // guarded by mutex_, as all below
  std::deque<std::function<void()>> later_;
  unsigned running_ = 0;
  unsigned running_later_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace verbena::ah
