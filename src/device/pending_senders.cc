#include "device/pending_senders.h"

#include <algorithm>
#include <mutex>

#include "device/queue_pair.h"

namespace verbena::device {

bool PendingSenders::add(QueuePair& queue_pair) noexcept {
  const std::lock_guard guard(lock_);
  if (std::find(waiting_.begin(), waiting_.end(), &queue_pair) != waiting_.end()) return false;
  waiting_.push_back(&queue_pair);
  count_.store(waiting_.size(), std::memory_order_relaxed);
  return waiting_.size() == 1;
}

void PendingSenders::remove(QueuePair& queue_pair) noexcept {
  const std::lock_guard guard(lock_);
  std::erase(waiting_, &queue_pair);
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

void PendingSenders::retry(Instant now) noexcept {
  const std::lock_guard guard(lock_);
  std::erase_if(waiting_, [now](QueuePair* queue_pair) { return queue_pair->retry_send(now); });
  count_.store(waiting_.size(), std::memory_order_relaxed);
}

std::optional<Instant> PendingSenders::next_timeout(Instant now) const noexcept {
  const std::lock_guard guard(lock_);
  std::optional<Instant> first;
  for (auto* queue_pair : waiting_) {
    const auto due = queue_pair->send_due(now);
    if (!due) return std::nullopt;
    if (!first || *due < *first) first = due;
  }
  return first;
}

}  // namespace verbena::device
