// When queue pairs of connections want to be called: an answer is overdue, or the other end asked for time.
//
// Most deadlines move on before they come, so a queue pair that is on time already is not touched: when its time comes
// it says by itself when it wants to be called next. A heap of (time, queue pair); an entry that its queue pair no
// longer stands by is thrown away when it comes up.
//
// Thread-safety: all calls from any thread.
// Ownership:     none; a queue pair is removed before it is destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/instant.h"
#include "transport/spin_lock.h"

namespace verbena::device {

class QueuePair;

// What a queue pair keeps for the timers.
struct TimerMark {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  // When it will be called. Written under the lock of the timers; relaxed: a stale read costs a call too many.
  std::atomic<std::int64_t> at{kNone};
  std::uint32_t entries = 0;  // in the heap; guarded by the lock of the timers
};

class Timers {
 public:
  bool empty() const noexcept { return first_.load(std::memory_order_relaxed) == TimerMark::kNone; }

  // `queue_pair` wants to be called at `at` or before. True where nobody is called sooner.
  bool arm(QueuePair& queue_pair, Instant at) noexcept;
  void remove(QueuePair& queue_pair) noexcept;
  // Calls those whose time has come. Requires: an RCU read section.
  void fire(Instant now) noexcept;
  std::optional<Instant> next_timeout() const noexcept;
  // Lets some of those that wait make their peers look. Requires: an RCU read section.
  void nudge_peers() noexcept;

 private:
  struct Entry {
    std::int64_t at;
    QueuePair* queue_pair;
  };

  QueuePair* take_due(Instant now) noexcept;
  void publish_first() noexcept;
  void drop_entries_of(QueuePair& queue_pair) noexcept;  // Requires: lock_

  mutable transport::SpinLock lock_;
  std::size_t nudge_next_ = 0;                         // guarded by lock_
  std::vector<Entry> heap_;                            // guarded by lock_
  std::atomic<std::int64_t> first_{TimerMark::kNone};  // when the first is due; relaxed: a hint
};

}  // namespace verbena::device
