#include "engine/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

namespace verbena::engine {

CompletionQueue::Pushed CompletionQueue::push(const Completion& completion, Place place, std::uint64_t stamp) noexcept {
  if (ring_.full() || overrun_) [[unlikely]] {
    if (options_.ignore_overrun) {
      place.give_back();
      return {.stored = true};
    }
    overrun_ = true;
    return {};
  }
  ring_.back_slot() = {completion, place};
  ring_.commit_push();
  if (options_.stamped) [[unlikely]]
    stamps_.push(stamp);
  Pushed pushed{.stored = true};
  if (armed_ != Arm::kNone) {
    const bool wakes = armed_ == Arm::kAny || completion.solicited || completion.status != WcStatus::kSuccess;
    if (wakes) wake(pushed);
  }
  return pushed;
}

void CompletionQueue::wake(Pushed& pushed) noexcept {
  ++waiting_;
  if (wake_count_ == 0 || waiting_ < wake_count_) {
    pushed.delayed = waiting_ == 1 && has_period_;
    return;
  }
  armed_ = Arm::kNone;
  waiting_ = 0;
  pushed.notify = true;
}

void CompletionQueue::moderate(std::uint16_t count, bool has_period) noexcept {
  has_period_ = has_period;
  wake_count_ = count == 0 && !has_period ? 1 : count;
}

bool CompletionQueue::on_period_over() noexcept {
  if (waiting_ == 0) return false;
  armed_ = Arm::kNone;
  waiting_ = 0;
  return true;
}

std::size_t CompletionQueue::poll(std::span<Completion> into) noexcept {
  const std::size_t count = std::min(into.size(), ring_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Held& oldest = ring_.front();
    into[i] = oldest.completion;
    oldest.place.give_back();
    ring_.pop();
    if (options_.stamped) [[unlikely]]
      stamps_.pop();
  }
  return count;
}

bool CompletionQueue::poll_one(Completion& completion, std::uint64_t& stamp) noexcept {
  if (ring_.empty()) return false;
  stamp = options_.stamped ? stamps_.front() : 0;
  return poll({&completion, 1}) == 1;
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
    Ring<std::uint64_t> stamps(options_.stamped ? capacity : 0);
    for (; !ring_.empty(); ring_.pop()) larger.push(ring_.front());
    for (; !stamps_.empty(); stamps_.pop()) stamps.push(stamps_.front());
    ring_ = std::move(larger);
    stamps_ = std::move(stamps);
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::kExhausted, "no memory for a larger completion queue", ENOMEM);
  }
  return {};
}

void CompletionQueue::remove_of(Qpn qpn) noexcept {
  const std::size_t count = ring_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Held held = ring_.front();
    const std::uint64_t stamp = options_.stamped ? stamps_.front() : 0;
    ring_.pop();
    if (options_.stamped) stamps_.pop();
    if (held.completion.qp_number == qpn.value()) continue;
    ring_.push(held);
    if (options_.stamped) stamps_.push(stamp);
  }
}

}  // namespace verbena::engine
