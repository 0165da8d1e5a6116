#include "engine/rate.h"

#include <algorithm>
#include <array>

namespace verbena::engine {
namespace {

// Indexed by enum ibv_rate, in hundreds of Mbit/s. 0 at MAX and at the code that has no rate.
constexpr std::array<std::uint16_t, 25> kHundredMegabits{0,    0,    25,  100,  300,  50,   200,  400,  600,
                                                         800,  1200, 140, 560,  1120, 1680, 250,  1000, 2000,
                                                         3000, 280,  500, 4000, 6000, 8000, 12000};
constexpr std::uint8_t kMaxRateCode = 0;

}  // namespace

std::optional<std::uint64_t> bits_per_second(std::uint8_t rate_code) noexcept {
  if (rate_code == kMaxRateCode) return 0;
  if (rate_code >= kHundredMegabits.size() || kHundredMegabits[rate_code] == 0) return std::nullopt;
  return std::uint64_t{kHundredMegabits[rate_code]} * 100'000'000;
}

BytePeriod byte_period(std::uint64_t bits_per_second) noexcept {
  if (bits_per_second == 0) return 0;
  const std::uint64_t period = ((std::uint64_t{8'000'000'000} << kBytePeriodShift)) / bits_per_second;
  return static_cast<BytePeriod>(std::clamp<std::uint64_t>(period, 1, UINT32_MAX));
}

}  // namespace verbena::engine
