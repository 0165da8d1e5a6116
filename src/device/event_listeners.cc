#include "device/event_listeners.h"

#include <algorithm>

namespace verbena::device {

void EventListeners::add(Context& context, std::uint64_t element) {
  const std::lock_guard guard(mutex_);
  all_.emplace_back(context.shared_from_this(), element);
}

void EventListeners::remove(std::uint64_t element) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = std::find_if(all_.begin(), all_.end(), [=](const Listener& one) { return one.second == element; });
  if (found == all_.end()) return;
  if (found->first->alive()) found->first->async_events().purge(element);
  all_.erase(found);
}

void EventListeners::remove_all() noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& [context, element] : all_) {
    if (context->alive()) context->async_events().purge(element);
  }
  all_.clear();
}

void EventListeners::tell(std::uint32_t type) noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& [context, element] : all_) context->async_events().push({element, type});
}

}  // namespace verbena::device
