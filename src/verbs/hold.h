// One use of an object by another that must not outlive it: while it is held, giving the object up is EBUSY.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace verbena::verbs {

// Who holds an object. The count outlives the object where a program gives it up against the rules.
//
// Thread-safety: any thread.
class Holders {
 public:
  // Acquire, partner of the release in ~Hold(): whoever finds none may free the object.
  bool any() const noexcept { return count_->load(std::memory_order_acquire) != 0; }

 private:
  friend class Hold;
  std::shared_ptr<std::atomic<std::uint32_t>> count_ = std::make_shared<std::atomic<std::uint32_t>>(0);
};

// Thread-safety: as a value.
class Hold {
 public:
  Hold() = default;
  explicit Hold(const Holders& of) noexcept : count_(of.count_) { count_->fetch_add(1, std::memory_order_relaxed); }
  Hold(Hold&&) noexcept = default;
  Hold& operator=(Hold&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~Hold() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_release);
  }

 private:
  std::shared_ptr<std::atomic<std::uint32_t>> count_;
};

}  // namespace verbena::verbs
