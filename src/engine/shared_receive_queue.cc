#include "engine/shared_receive_queue.h"

#include <cerrno>
#include <new>
#include <string>
#include <utility>

namespace verbena::engine {

Take SharedReceiveQueue::take(std::uint64_t length, TakenReceive& taken) noexcept {
  if (queue_.empty()) return Take::kEmpty;
  const ReceiveRequest request = queue_.front();
  if (request.length() < length) return Take::kTooSmall;
  taken.copy(request);
  queue_.pop();
  queue_.free(queue_.popped());
  if (queue_.size() < limit_) {
    limit_ = 0;
    limit_event_ = true;
  }
  return Take::kTaken;
}

bool SharedReceiveQueue::poll_limit_event() noexcept {
  return std::exchange(limit_event_, false);
}

Status SharedReceiveQueue::set_limit(std::uint32_t limit) {
  if (limit > queue_.capacity()) {
    return failure(ErrorCode::kInvalidArgument,
                   "limit " + std::to_string(limit) + " is above the " + std::to_string(queue_.capacity()) +
                       " requests of the shared receive queue",
                   EINVAL);
  }
  limit_ = limit;
  return {};
}

Status SharedReceiveQueue::resize(std::uint32_t capacity) {
  if (capacity == 0 || capacity < queue_.size() || capacity < limit_) {
    return failure(ErrorCode::kInvalidArgument,
                   "shared receive queue holds " + std::to_string(queue_.size()) + " requests with a limit of " +
                       std::to_string(limit_) + " and cannot be resized to " + std::to_string(capacity),
                   EINVAL);
  }
  try {
    ReceiveQueue larger(capacity, queue_.max_sge());
    for (; !queue_.empty(); queue_.pop()) {
      const ReceiveRequest request = queue_.front();
      larger.post(request.wr_id, request.sges);
    }
    queue_ = std::move(larger);
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::kExhausted, "no memory for a larger shared receive queue", ENOMEM);
  }
  return {};
}

}  // namespace verbena::engine
