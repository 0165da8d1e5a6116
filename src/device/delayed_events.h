// Completion queues whose event waits for its period of moderation to be over.
//
// Thread-safety: all calls from any thread.
// Ownership:     none; a queue is removed before it is destroyed.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "base/instant.h"

namespace verbena::device {

class CompletionQueue;

class DelayedEvents {
 public:
  bool empty() const noexcept { return first_.load(std::memory_order_relaxed) == kNone; }
  // True where none is due sooner. Where no memory is left the event comes at once.
  bool add(CompletionQueue& queue, Instant due) noexcept;
  // When this returns the queue is not called any more.
  void remove(CompletionQueue& queue) noexcept;
  // Calls those whose time has come.
  void fire(Instant now) noexcept;
  std::optional<Instant> next_timeout() const noexcept;

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  struct Entry {
    std::int64_t due;
    CompletionQueue* queue;
  };
  void publish_first() noexcept;  // Requires: mutex_

  std::mutex mutex_;            // held over the calls; the lock of a completion queue and of its channel are inside it
  std::vector<Entry> entries_;  // guarded by mutex_
  std::atomic<std::int64_t> first_{kNone};  // the earliest; relaxed: a hint
};

}  // namespace verbena::device
