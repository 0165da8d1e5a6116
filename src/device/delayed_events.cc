#include "device/delayed_events.h"

#include <algorithm>
#include <new>

#include "device/completion_queue.h"

namespace verbena::device {

bool DelayedEvents::add(CompletionQueue& queue, Instant due) noexcept {
  try {
    const std::lock_guard guard(mutex_);
    entries_.push_back({due.ns, &queue});
    publish_first();
    return first_.load(std::memory_order_relaxed) == due.ns;
  } catch (const std::bad_alloc&) {
    queue.on_period_over();
    return false;
  }
}

void DelayedEvents::remove(CompletionQueue& queue) noexcept {
  const std::lock_guard guard(mutex_);
  std::erase_if(entries_, [&queue](const Entry& entry) { return entry.queue == &queue; });
  publish_first();
}

void DelayedEvents::fire(Instant now) noexcept {
  if (first_.load(std::memory_order_relaxed) > now.ns) return;
  const std::lock_guard guard(mutex_);
  std::erase_if(entries_, [now](const Entry& entry) {
    if (entry.due > now.ns) return false;
    entry.queue->on_period_over();
    return true;
  });
  publish_first();
}

std::optional<Instant> DelayedEvents::next_timeout() const noexcept {
  const std::int64_t first = first_.load(std::memory_order_relaxed);
  return first == kNone ? std::nullopt : std::optional(Instant{first});
}

void DelayedEvents::publish_first() noexcept {
  std::int64_t first = kNone;
  for (const Entry& entry : entries_) first = std::min(first, entry.due);
  first_.store(first, std::memory_order_relaxed);
}

}  // namespace verbena::device
