// Who holds what, by the place that took it: one record for the handles of a destination that were taken at one place
// within about a second. A handle points to its record and its copies share it, so holding on costs no lock; taking one
// writes to the record under Core's mutex, which an acquisition has anyway.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "verbena/call_site.h"

namespace verbena::ah {

// Time in steps of 2^24 ns (17 ms), in 32 bits: differences are right up to two years.
inline constexpr unsigned kHoldingTickBits = 24;

inline std::uint32_t holding_tick(std::int64_t now_ns) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now_ns) >> kHoldingTickBits);
}

inline std::chrono::nanoseconds held_for(std::uint32_t since_tick, std::int64_t now_ns) noexcept {
  const std::uint32_t ticks = holding_tick(now_ns) - since_tick;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ticks) << kHoldingTickBits);
}

struct Holding {
  // From 0 to 1 under Core's mutex; up and down by copies anywhere. Who drops one touches the record no more, and then
  // counts down what it holds, with release: the record may go when that is 0.
  std::atomic<std::uint32_t> count{0};
  // Guarded by Core's mutex; constant while the count is not 0.
  std::uint32_t since = 0;          // holding_tick() of the first
  const CallSite* place = nullptr;  // kept by the Holdings; null before the first
};

// The records of many objects. The first of an object may be a member of it; most have no other.
//
// Thread-safety: under Core's mutex.
// Ownership:     owns the records beyond the first.
// Errors:        none.
class Holdings {
 public:
  // One more is held, taken at that place. `first` may be null.
  Holding& take(const void* of, Holding* first, const CallSite& taken_at, std::int64_t now_ns);
  // Requires: nobody holds it.
  void forget(const void* of) { more_.erase(of); }

  template <class Visit>
  void for_each(const void* of, const Holding* first, Visit visit) const {
    if (first != nullptr && first->count.load(std::memory_order_acquire) != 0) visit(*first);
    const auto found = more_.find(of);
    if (found == more_.end()) return;
    for (const std::unique_ptr<Holding>& one : found->second) {
      if (one->count.load(std::memory_order_acquire) != 0) visit(*one);
    }
  }

 private:
  // The same call may have two names of its file, where it stands in a header.
  struct ByPlace {
    bool operator()(const CallSite& a, const CallSite& b) const noexcept;
  };

  std::unordered_map<const void*, std::vector<std::unique_ptr<Holding>>> more_;
  std::set<CallSite, ByPlace> places_;  // as many as the application has calls
};

}  // namespace verbena::ah
