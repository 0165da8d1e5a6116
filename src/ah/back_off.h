// How long a destination that failed is left alone. Pure: the lot is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace verbena::ah {

// After the first failure `first`, doubled with each one more in a row, up to `longest`; and up to an eighth of that on
// top, by lot, so that those who failed together do not try again together. Requires: failures >= 1, and times of up to
// a year.
inline std::chrono::nanoseconds back_off(std::chrono::nanoseconds first, std::chrono::nanoseconds longest,
                                         std::uint32_t failures, std::uint64_t lot) noexcept {
  constexpr std::int64_t kSteps = 1024;
  std::chrono::nanoseconds span = first;
  for (std::uint32_t i = 1; i < failures && span < longest && span.count() > 0; ++i) span *= 2;
  span = std::min(span, longest);
  return span + span / 8 * static_cast<std::int64_t>(lot % kSteps) / kSteps;
}

}  // namespace verbena::ah
