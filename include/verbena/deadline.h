// Until when a call may wait, on the monotonic clock.
#pragma once

#include <algorithm>
#include <chrono>

namespace verbena {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Far enough to mean "however long it takes", near enough for every clock arithmetic.
  static constexpr Clock::duration kLongest = std::chrono::hours(24 * 365);

  // A span of more than kLongest, forward or back, is taken as that.
  static Deadline in(Clock::duration span) { return Deadline(Clock::now() + std::clamp(span, -kLongest, kLongest)); }
  static constexpr Deadline at(Clock::time_point when) { return Deadline(when); }
  static Deadline never() { return in(kLongest); }

  Clock::time_point when() const noexcept { return when_; }
  bool passed() const { return Clock::now() >= when_; }
  // Never negative.
  Clock::duration remaining() const {
    const Clock::time_point now = Clock::now();
    return when_ > now ? when_ - now : Clock::duration::zero();
  }

 private:
  constexpr explicit Deadline(Clock::time_point when) : when_(when) {}

  Clock::time_point when_;
};

}  // namespace verbena
