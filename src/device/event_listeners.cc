#include "device/event_listeners.h"

#include <algorithm>

namespace verbena::device {

void EventListeners::add(Context& context, std::uint64_t element) {
  const std::lock_guard guard(mutex_);
  all_.emplace_back(context.shared_from_this(), element);
}

// The end of a context takes locks of its own, so the last reference to one is let go of outside.
void EventListeners::remove(std::uint64_t element) noexcept {
  Listener removed;
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [=](const Listener& one) { return one.second == element; });
  if (found == all_.end()) return;
  if (found->first->alive()) found->first->async_events().purge(element);
  removed = std::move(*found);
  all_.erase(found);
}

void EventListeners::remove_all() noexcept {
  std::vector<Listener> removed;
  const std::lock_guard guard(mutex_);
  for (const auto& [context, element] : all_) {
    if (context->alive()) context->async_events().purge(element);
  }
  removed.swap(all_);
}

void EventListeners::tell(std::uint32_t type) noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& [context, element] : all_) context->async_events().push({element, type});
}

bool EventListeners::has_other(const Context& context) const noexcept {
  const std::lock_guard guard(mutex_);
  return std::any_of(all_.begin(), all_.end(),
                     [&context](const Listener& one) { return one.first.get() != &context && !one.first->closed(); });
}

}  // namespace verbena::device
