#include "engine/send_queue.h"

#include <algorithm>
#include <bit>

namespace verbena::engine {
namespace {

std::size_t lines_for(std::uint32_t max_sge, std::uint32_t max_inline, std::size_t line) {
  const std::size_t behind = std::max(max_sge * sizeof(Sge), std::size_t{max_inline});
  return (sizeof(SendWqe) + behind + line - 1) / line;
}

}  // namespace

SendQueue::SendQueue(std::uint32_t capacity, std::uint32_t max_sge, std::uint32_t max_inline)
    : mask_(std::bit_ceil(std::max<std::uint64_t>(capacity, 1)) - 1),
      stride_(lines_for(max_sge, max_inline, sizeof(Line))),
      capacity_(capacity),
      max_inline_(static_cast<std::uint32_t>(stride_ * sizeof(Line) - sizeof(SendWqe))) {
  if (capacity != 0) lines_.resize((mask_ + 1) * stride_);
}

std::size_t SendQueue::forget_address(const AddressHandle& handle) noexcept {
  std::size_t found = 0;
  for (std::uint64_t at = given_back_.position.load(std::memory_order_relaxed); at < posted_; ++at) {
    SendWqe& wqe = wqe_at(at);
    if (wqe.address != &handle) continue;
    wqe.address = nullptr;
    ++found;
  }
  return found;
}

}  // namespace verbena::engine
