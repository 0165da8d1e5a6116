// One use of an object by another that must not outlive it: while it is held, giving the object up is EBUSY.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace verbena::verbs {

// Thread-safety: any thread.
class Holders {
 public:
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // Release, partner of the acquire in any(): whoever finds none may free the object.
  void remove() noexcept { count_.fetch_sub(1, std::memory_order_release); }
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<std::uint32_t> count_{0};
};

// Thread-safety: as a value. Ownership: the held object outlives it.
class Hold {
 public:
  Hold() = default;
  explicit Hold(Holders& of) noexcept : of_(&of) { of_->add(); }
  Hold(Hold&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~Hold() {
    if (of_ != nullptr) of_->remove();
  }

 private:
  Holders* of_ = nullptr;
};

}  // namespace verbena::verbs
