// The RNR NAK timer: how long a requester waits before it tries again, in a code of five bits
// (InfiniBand Architecture volume 1, section 9.7.5.2).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/instant.h"

namespace verbena::wire {

inline constexpr std::array<std::uint32_t, 32> kRnrTimerMicroseconds{
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

// Only the lower five bits of `code` count.
constexpr Duration rnr_delay(std::uint8_t code) noexcept {
  return std::chrono::microseconds(kRnrTimerMicroseconds[code & 0x1f]);
}

// The code of the shortest delay that is not below `wanted`; the longest (0) where none is.
constexpr std::uint8_t rnr_timer_code(Duration wanted) noexcept {
  for (std::size_t code = 1; code < kRnrTimerMicroseconds.size(); ++code) {
    if (std::chrono::microseconds(kRnrTimerMicroseconds[code]) >= wanted) return static_cast<std::uint8_t>(code);
  }
  return 0;
}

}  // namespace verbena::wire
