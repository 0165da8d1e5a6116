#include "engine/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

namespace verbena::engine {

CompletionQueue::Pushed CompletionQueue::push(const Completion& completion, Place place) noexcept {
  if (ring_.full() || overrun_) [[unlikely]] {
    overrun_ = true;
    return {};
  }
  ring_.back_slot() = {completion, place};
  ring_.commit_push();
  Pushed pushed{.stored = true, .notify = false};
  if (armed_ != Arm::kNone) {
    const bool wakes = armed_ == Arm::kAny || completion.solicited || completion.status != WcStatus::kSuccess;
    if (wakes) {
      armed_ = Arm::kNone;
      pushed.notify = true;
    }
  }
  return pushed;
}

std::size_t CompletionQueue::poll(std::span<Completion> into) noexcept {
  const std::size_t count = std::min(into.size(), ring_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Held& oldest = ring_.front();
    into[i] = oldest.completion;
    oldest.place.give_back();
    ring_.pop();
  }
  return count;
}

void CompletionQueue::arm(Arm arm) noexcept {
  armed_ = std::max(armed_, arm);
}

Status CompletionQueue::resize(std::uint32_t capacity) {
  if (overrun_) {
    return failure(ErrorCode::kUnavailable, "completion queue was overrun; destroy it and make a larger one", EINVAL);
  }
  if (capacity == 0 || capacity < ring_.size()) {
    return failure(ErrorCode::kInvalidArgument,
                   "completion queue holds " + std::to_string(ring_.size()) + " completions and cannot shrink to " +
                       std::to_string(capacity),
                   EINVAL);
  }
  try {
    Ring<Held> larger(capacity);
    for (; !ring_.empty(); ring_.pop()) larger.push(ring_.front());
    ring_ = std::move(larger);
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::kExhausted, "no memory for a larger completion queue", ENOMEM);
  }
  return {};
}

void CompletionQueue::remove_of(Qpn qpn) noexcept {
  const std::size_t count = ring_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Held held = ring_.front();
    ring_.pop();
    if (held.completion.qp_number != qpn.value()) ring_.push(held);
  }
}

}  // namespace verbena::engine
