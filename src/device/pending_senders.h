// Queue pairs with sends that could not go out when they were posted: the peer's ring was full, or the static rate of
// an address handle says later.
//
// Thread-safety: all calls from any thread.
// Ownership:     none; a queue pair is removed before it is destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/instant.h"
#include "transport/spin_lock.h"

namespace verbena::device {

class QueuePair;

class PendingSenders {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  // Adding twice is adding once. True where it was the first.
  bool add(QueuePair& queue_pair) noexcept;
  void remove(QueuePair& queue_pair) noexcept;
  // Lets each one whose send side is free try again; those that are done leave.
  void retry(Instant now) noexcept;
  // When the first may go on, where all of them wait for their rate alone; else nothing.
  std::optional<Instant> next_timeout(Instant now) const noexcept;

 private:
  mutable transport::SpinLock lock_;
  std::vector<QueuePair*> waiting_;    // guarded by lock_
  std::atomic<std::size_t> count_{0};  // a hint for empty(); relaxed
};

}  // namespace verbena::device
