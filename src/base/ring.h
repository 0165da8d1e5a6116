// A bounded first-in first-out queue of fixed capacity, in one allocation made at the start.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace verbena {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(std::bit_ceil(capacity == 0 ? 1 : capacity)), capacity_(capacity) {}

  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(head_ - tail_); }
  bool empty() const noexcept { return head_ == tail_; }
  bool full() const noexcept { return size() >= capacity_; }

  // The slot that the next commit_push() will add. Requires: !full().
  T& back_slot() noexcept { return slots_[head_ & mask()]; }
  void commit_push() noexcept { ++head_; }
  // False where full.
  bool push(T value) noexcept {
    if (full()) return false;
    back_slot() = std::move(value);
    commit_push();
    return true;
  }

  // Requires: !empty().
  T& front() noexcept { return slots_[tail_ & mask()]; }
  const T& front() const noexcept { return slots_[tail_ & mask()]; }
  void pop() noexcept { ++tail_; }
  // The element `index` places behind the front. Requires: index < size().
  T& operator[](std::size_t index) noexcept { return slots_[(tail_ + index) & mask()]; }

 private:
  std::size_t mask() const noexcept { return slots_.size() - 1; }

  std::vector<T> slots_;
  std::size_t capacity_;
  std::uint64_t head_ = 0;  // where the next push goes
  std::uint64_t tail_ = 0;  // where the next pop comes from
};

}  // namespace verbena
