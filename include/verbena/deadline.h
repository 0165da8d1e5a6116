// Until when a call may wait, on the monotonic clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace verbena {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline in(Clock::duration span) { return Deadline(Clock::now() + span); }
  static constexpr Deadline at(Clock::time_point when) { return Deadline(when); }
  // Far enough to mean "however long it takes", near enough for every clock arithmetic.
  static Deadline never() { return in(std::chrono::hours(24 * 365)); }

  Clock::time_point when() const noexcept { return when_; }
  bool passed() const { return Clock::now() >= when_; }
  // Never negative.
  Clock::duration remaining() const { return std::max(when_ - Clock::now(), Clock::duration::zero()); }

 private:
  constexpr explicit Deadline(Clock::time_point when) : when_(when) {}

  Clock::time_point when_;
};

}  // namespace verbena
