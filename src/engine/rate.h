// Static rates: the codes of enum ibv_rate, and what they mean.
#pragma once

#include <cstdint>
#include <optional>

namespace verbena::engine {

// Bits a second; 0 for "as fast as the port"; nothing for a code that verbs does not define.
std::optional<std::uint64_t> bits_per_second(std::uint8_t rate_code) noexcept;

// How long a byte takes at a rate, in 2^-20 ns, so that pacing needs no division. 0 for a rate of 0.
using BytePeriod = std::uint32_t;
inline constexpr unsigned kBytePeriodShift = 20;
BytePeriod byte_period(std::uint64_t bits_per_second) noexcept;

}  // namespace verbena::engine
