// A value that readers on the data path look at while its owner changes it. There are two of it, the one that is seen
// and its twin: a change that needs no memory of its own, as one that takes something away, is made to the twin, which
// then changes places with it; so it cannot fail.
//
//   change: twin changed ──> seen ──> grace period ──> the one before changed likewise: the twin
//
// Thread-safety: read(): any thread, inside an RCU read section. The rest: the owner's lock, outside of read sections.
// Ownership:     owns both values.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "device/rcu.h"

namespace verbena::device {

template <class T>
class Published {
 public:
  Published() : twin_(std::make_unique<T>()), seen_(new T) {}
  ~Published() { delete seen_.load(std::memory_order_relaxed); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  const T& read() const noexcept { return *seen_.load(std::memory_order_acquire); }
  // The owner's.
  const T& now() const noexcept { return *seen_.load(std::memory_order_relaxed); }

  // Requires: the two are equal.
  void replace(std::unique_ptr<T> next, std::unique_ptr<T> twin) noexcept {
    twin_ = std::move(twin);
    const std::unique_ptr<T> before = exchange(std::move(next));
  }
  // Calls `action` with each of both.
  template <class Action>
  void change(Action action) noexcept {
    action(*twin_);
    twin_ = exchange(std::move(twin_));
    action(*twin_);
  }

 private:
  // Returns what nobody sees any more.
  std::unique_ptr<T> exchange(std::unique_ptr<T> next) noexcept {
    std::unique_ptr<T> before(seen_.exchange(next.release(), std::memory_order_acq_rel));
    wait_for_readers();
    return before;
  }

  std::unique_ptr<T> twin_;
  // Published by release under the owner's lock, read by acquire inside RCU read sections.
  std::atomic<T*> seen_;
};

}  // namespace verbena::device
