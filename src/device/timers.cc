#include "device/timers.h"

#include <algorithm>
#include <mutex>

#include "device/queue_pair.h"

namespace verbena::device {
namespace {

// Of one queue pair: what it asked for later, and no longer stands by, is thrown away beyond that.
constexpr std::uint32_t kMostEntries = 4;
constexpr auto kLater = [](const auto& a, const auto& b) { return a.at > b.at; };

}  // namespace

bool Timers::arm(QueuePair& queue_pair, Instant at) noexcept {
  TimerMark& mark = queue_pair.timer_mark();
  if (mark.at.load(std::memory_order_relaxed) <= at.ns) return false;
  const std::lock_guard guard(lock_);
  if (mark.at.load(std::memory_order_relaxed) <= at.ns) return false;
  mark.at.store(at.ns, std::memory_order_relaxed);
  if (mark.entries == kMostEntries) drop_entries_of(queue_pair);
  ++mark.entries;
  heap_.push_back({at.ns, &queue_pair});
  std::push_heap(heap_.begin(), heap_.end(), kLater);
  publish_first();
  return heap_.front().at == at.ns;
}

void Timers::remove(QueuePair& queue_pair) noexcept {
  const std::lock_guard guard(lock_);
  TimerMark& mark = queue_pair.timer_mark();
  mark.at.store(TimerMark::kNone, std::memory_order_relaxed);
  if (mark.entries == 0) return;
  drop_entries_of(queue_pair);
  publish_first();
}

void Timers::drop_entries_of(QueuePair& queue_pair) noexcept {
  queue_pair.timer_mark().entries = 0;
  std::erase_if(heap_, [&](const Entry& entry) { return entry.queue_pair == &queue_pair; });
  std::make_heap(heap_.begin(), heap_.end(), kLater);
}

void Timers::fire(Instant now) noexcept {
  if (first_.load(std::memory_order_relaxed) > now.ns) return;
  while (QueuePair* const due = take_due(now)) due->on_timer(now);
}

// The first that is due and stands by its time, which is then forgotten.
QueuePair* Timers::take_due(Instant now) noexcept {
  const std::lock_guard guard(lock_);
  while (!heap_.empty() && heap_.front().at <= now.ns) {
    const Entry entry = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), kLater);
    heap_.pop_back();
    publish_first();
    TimerMark& mark = entry.queue_pair->timer_mark();
    --mark.entries;
    if (mark.at.load(std::memory_order_relaxed) != entry.at) continue;
    mark.at.store(TimerMark::kNone, std::memory_order_relaxed);
    return entry.queue_pair;
  }
  return nullptr;
}

void Timers::publish_first() noexcept {
  first_.store(heap_.empty() ? TimerMark::kNone : heap_.front().at, std::memory_order_relaxed);
}

void Timers::nudge_peers() noexcept {
  constexpr std::size_t kAtOnce = 16;
  const std::lock_guard guard(lock_);
  for (std::size_t i = 0; i < std::min(kAtOnce, heap_.size()); ++i) {
    heap_[nudge_next_++ % heap_.size()].queue_pair->nudge_peer();
  }
}

std::optional<Instant> Timers::next_timeout() const noexcept {
  const std::int64_t at = first_.load(std::memory_order_relaxed);
  return at == TimerMark::kNone ? std::nullopt : std::optional(Instant{at});
}

}  // namespace verbena::device
