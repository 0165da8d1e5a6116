#include "engine/receive_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace verbena::engine {

ReceiveQueue::ReceiveQueue(std::uint32_t capacity, std::uint32_t max_sge)
    : capacity_(capacity),
      mask_(std::bit_ceil(std::max<std::uint64_t>(capacity, 1)) - 1),
      stride_(std::min<std::size_t>(max_sge, kMaxSge) + 1),
      units_(capacity == 0 ? 0 : (mask_ + 1) * stride_) {}

int ReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept {
  if (sges.size() >= stride_) return EINVAL;
  if (head_ - freed_ >= capacity_) return ENOMEM;
  Sge* unit = &units_[slot(head_)];
  unit->address = wr_id;
  unit->length = static_cast<std::uint32_t>(sges.size());
  std::copy(sges.begin(), sges.end(), unit + 1);
  ++head_;
  return 0;
}

ReceiveRequest ReceiveQueue::front() const noexcept {
  const Sge* unit = &units_[slot(tail_)];
  return {unit->address, std::span(unit + 1, unit->length)};
}

}  // namespace verbena::engine
