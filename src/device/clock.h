// The one place where the RNIC reads clocks.
#pragma once

#include <ctime>

#include "base/instant.h"

namespace verbena::device {

inline Instant now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

// Nanoseconds since 1970, for captures.
inline std::int64_t wall_clock_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace verbena::device
