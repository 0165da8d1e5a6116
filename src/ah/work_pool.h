// A few threads that do what may block: resolve, create, destroy.
//
// Five lanes. What finds out which addresses are still right goes before all. What somebody waits for and what replaces
// something stale share the threads: neither waits for all of the other, however long its line is. What failed before
// comes last, and still in bounded time: one of it after every few of the others, by turns of what had an address and
// what never had one. It never takes more than half of the threads: dead peers do not hold up the living. Nor do
// replacements and what failed before take all threads together, where there are several.
// Work may have a due time, before which it holds no thread.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "verbena/deadline.h"

namespace verbena::ah {

enum class Lane : std::uint8_t {
  kUrgent,
  kFirst,    // somebody waits for it
  kReplace,  // instead of what is stale
  kRestore,  // the same, after a failure
  kLater,    // never had an address, and failed
};

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
  // Not before `when`, and then behind what is in the lane. Ignored after stop().
  void submit_at(Deadline::Clock::time_point when, Lane lane, std::function<void()> work);
  // Takes nothing more, drops what is queued.
  void stop();
  // True where nothing is running; false at the deadline. Requires: stop() before it.
  bool wait_idle(Deadline deadline);
  void join();

 private:
  using Work = std::function<void()>;
  struct Delayed {
    Lane lane;
    Work work;
  };

  void run();
  // All below require the mutex.
  std::deque<Work>& line(Lane lane) { return lines_[static_cast<std::size_t>(lane)]; }
  const std::deque<Work>& line(Lane lane) const { return lines_[static_cast<std::size_t>(lane)]; }
  void take_due();
  std::optional<Lane> next_lane() const;
  std::optional<Lane> next_of_failed() const;
  Work take(Lane lane);

  const unsigned failed_limit_;  // threads for what failed before
  const unsigned slow_limit_;    // and for replacements with it
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::array<std::deque<Work>, 5> lines_;  // by Lane; guarded by mutex_, as all below
  std::multimap<Deadline::Clock::time_point, Delayed> delayed_;
  bool replace_had_turn_ = false;  // the last of kFirst and kReplace that was taken was of kReplace
  bool restore_had_turn_ = false;  // the last of kRestore and kLater that was taken was of kRestore
  unsigned passed_over_ = 0;       // taken of kFirst and kReplace while something that failed before was waiting
  unsigned running_ = 0;
  unsigned running_replace_ = 0;
  unsigned running_failed_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace verbena::ah
