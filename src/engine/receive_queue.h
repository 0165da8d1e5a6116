// Posted receives, oldest first. Each slot has room for the longest SGE list, so posting never allocates. What was
// popped keeps its place until it is freed.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/limits.h"
#include "engine/sge.h"

namespace verbena::engine {

struct ReceiveRequest {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;

  std::uint64_t length() const noexcept {
    std::uint64_t sum = 0;
    for (const Sge& sge : sges) sum += sge.length;
    return sum;
  }
};

class ReceiveQueue {
 public:
  // `max_sge` above kMaxSge is kMaxSge.
  ReceiveQueue(std::uint32_t capacity, std::uint32_t max_sge);

  std::uint32_t capacity() const noexcept { return capacity_; }
  std::uint32_t max_sge() const noexcept { return static_cast<std::uint32_t>(stride_ - 1); }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(head_ - tail_); }
  bool empty() const noexcept { return head_ == tail_; }

  // 0; EINVAL for too many SGEs; ENOMEM where full.
  int post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept;
  // The oldest; its SGEs are valid until pop() and clear(). Requires: !empty().
  ReceiveRequest front() const noexcept;
  void pop() noexcept { ++tail_; }
  void clear() noexcept { tail_ = head_; }
  // How many were popped or cleared, ever.
  std::uint64_t popped() const noexcept { return tail_; }
  // The places of the first `count` ever popped are free. Requires: count <= popped().
  void free(std::uint64_t count) noexcept { freed_ = count; }

 private:
  // A slot is one unit that holds the wr_id and the number of SGEs, then one unit an SGE.
  std::size_t slot(std::uint64_t position) const noexcept { return (position & mask_) * stride_; }

  std::uint32_t capacity_;
  std::uint64_t mask_;
  std::size_t stride_;  // in units
  std::vector<Sge> units_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t freed_ = 0;
};

}  // namespace verbena::engine
