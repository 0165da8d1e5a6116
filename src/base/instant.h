// Time as the pure rooms see it: a number handed in, never read from a clock.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace verbena {

using Duration = std::chrono::nanoseconds;

// A point on a monotonic clock whose zero means nothing.
struct Instant {
  std::int64_t ns = 0;

  friend constexpr auto operator<=>(Instant, Instant) noexcept = default;
  friend constexpr Instant operator+(Instant at, Duration by) noexcept { return {at.ns + by.count()}; }
  friend constexpr Duration operator-(Instant a, Instant b) noexcept { return Duration(a.ns - b.ns); }
};

}  // namespace verbena
