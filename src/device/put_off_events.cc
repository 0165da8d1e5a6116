#include "device/put_off_events.h"

#include <utility>

#include "device/completion_queue.h"

namespace verbena::device {
namespace {

thread_local PutOffEvents* current = nullptr;

}  // namespace

PutOffEvents::Scope::Scope(PutOffEvents& events) noexcept {
  current = &events;
}

PutOffEvents::Scope::~Scope() {
  current = nullptr;
}

bool PutOffEvents::takes(CompletionQueue& queue) noexcept {
  if (current == nullptr) return false;
  if (queue.put_off_++ == 0) queue.next_put_off_ = std::exchange(current->first_, &queue);
  return true;
}

void PutOffEvents::flush() noexcept {
  while (CompletionQueue* const queue = first_) {
    first_ = std::exchange(queue->next_put_off_, nullptr);
    for (auto left = std::exchange(queue->put_off_, 0); left > 0; --left) queue->channel_->push({queue->element_, 0});
  }
}

}  // namespace verbena::device
