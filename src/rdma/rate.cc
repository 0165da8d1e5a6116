#include "verbena/rate.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace verbena {

namespace {

constexpr std::uint64_t kMega = 1'000'000;
constexpr std::uint64_t kGiga = 1'000 * kMega;
constexpr std::uint64_t kWasteAt = 4;  // a rate of one part in so many of the port's speed, or less

struct RateRow {
  ibv_rate rate;
  std::uint64_t bits_per_second;
};

// Slowest first.
constexpr std::array<RateRow, 23> kRates{
    {{IBV_RATE_2_5_GBPS, 2'500 * kMega}, {IBV_RATE_5_GBPS, 5 * kGiga},      {IBV_RATE_10_GBPS, 10 * kGiga},
     {IBV_RATE_14_GBPS, 14 * kGiga},     {IBV_RATE_20_GBPS, 20 * kGiga},    {IBV_RATE_25_GBPS, 25 * kGiga},
     {IBV_RATE_28_GBPS, 28 * kGiga},     {IBV_RATE_30_GBPS, 30 * kGiga},    {IBV_RATE_40_GBPS, 40 * kGiga},
     {IBV_RATE_50_GBPS, 50 * kGiga},     {IBV_RATE_56_GBPS, 56 * kGiga},    {IBV_RATE_60_GBPS, 60 * kGiga},
     {IBV_RATE_80_GBPS, 80 * kGiga},     {IBV_RATE_100_GBPS, 100 * kGiga},  {IBV_RATE_112_GBPS, 112 * kGiga},
     {IBV_RATE_120_GBPS, 120 * kGiga},   {IBV_RATE_168_GBPS, 168 * kGiga},  {IBV_RATE_200_GBPS, 200 * kGiga},
     {IBV_RATE_300_GBPS, 300 * kGiga},   {IBV_RATE_400_GBPS, 400 * kGiga},  {IBV_RATE_600_GBPS, 600 * kGiga},
     {IBV_RATE_800_GBPS, 800 * kGiga},   {IBV_RATE_1200_GBPS, 1200 * kGiga}}};

struct CodeRow {
  std::uint32_t code;
  std::uint64_t means;
};

// InfiniBand specification, PortInfo: LinkWidthActive, LinkSpeedActive and its extensions; XDR by active_speed_ex.
constexpr std::array<CodeRow, 5> kLanes{{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}};
constexpr std::array<CodeRow, 9> kLaneSpeeds{{{1, 2'500 * kMega},
                                              {2, 5 * kGiga},
                                              {4, 10 * kGiga},
                                              {8, 10 * kGiga},  // FDR10
                                              {16, 14 * kGiga},
                                              {32, 25 * kGiga},
                                              {64, 50 * kGiga},
                                              {128, 100 * kGiga},
                                              {256, 200 * kGiga}}};

template <std::size_t Rows>
std::uint64_t meaning_of(const std::array<CodeRow, Rows>& table, std::uint32_t code) {
  const auto row = std::find_if(table.begin(), table.end(), [code](const CodeRow& r) { return r.code == code; });
  return row != table.end() ? row->means : 0;
}

std::string in_gigabits(std::uint64_t bits_per_second) {
  return fmt::format("{:g} Gbit/s", static_cast<double>(bits_per_second) / static_cast<double>(kGiga));
}

std::string all_rates() {
  std::string text;
  for (const RateRow& row : kRates) {
    text += fmt::format("{}{:g}g", text.empty() ? "" : ", ",
                        static_cast<double>(row.bits_per_second) / static_cast<double>(kGiga));
  }
  return text;
}

}  // namespace

PortSpeed port_speed(std::uint32_t active_width, std::uint32_t active_speed) noexcept {
  return {.bits_per_second = meaning_of(kLanes, active_width) * meaning_of(kLaneSpeeds, active_speed)};
}

std::optional<std::uint64_t> bits_per_second(ibv_rate rate) noexcept {
  const auto row = std::find_if(kRates.begin(), kRates.end(), [rate](const RateRow& r) { return r.rate == rate; });
  if (row == kRates.end()) return std::nullopt;
  return row->bits_per_second;
}

std::optional<ibv_rate> fastest_rate_within(std::uint64_t bits_per_second) noexcept {
  std::optional<ibv_rate> fastest;
  for (const RateRow& row : kRates) {
    if (row.bits_per_second <= bits_per_second) fastest = row.rate;
  }
  return fastest;
}

std::string to_string(ibv_rate rate) {
  if (rate == IBV_RATE_MAX) return "the port's speed";
  const std::optional<std::uint64_t> speed = bits_per_second(rate);
  return speed ? in_gigabits(*speed) : fmt::format("no ibv_rate ({})", static_cast<int>(rate));
}

Result<ibv_rate> parse_rate(std::string_view text) {
  if (text == "max" || text == "0") return IBV_RATE_MAX;
  const auto refuse = [text] {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("rate \"{}\" is none that an address handle can have; use max or one of {}", text, all_rates()));
  };
  if (text.size() < 2 || (text.back() != 'g' && text.back() != 'G')) return refuse();
  double gigabits = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stopped, error] = std::from_chars(text.data(), end, gigabits, std::chars_format::fixed);
  if (error != std::errc{} || stopped != end) return refuse();
  for (const RateRow& row : kRates) {
    // Each is a multiple of 0.5, so that equality of doubles is exact.
    if (static_cast<double>(row.bits_per_second) / static_cast<double>(kGiga) == gigabits) return row.rate;
  }
  return refuse();
}

RateAdvice advise_rate(ibv_rate rate, PortSpeed speed) {
  if (rate == IBV_RATE_MAX) return {Severity::kGood, "no static rate: as fast as the port"};
  const std::optional<std::uint64_t> asked = bits_per_second(rate);
  if (!asked) {
    return {Severity::kFailure, fmt::format("static rate {} is no ibv_rate; use one of IBV_RATE_*, or 0 for the port's "
                                            "speed",
                                            static_cast<int>(rate))};
  }
  const std::string compared =
      fmt::format("static rate {} on a port of {}", in_gigabits(*asked),
                  speed.bits_per_second != 0 ? in_gigabits(speed.bits_per_second) : "unknown speed");
  if (speed.bits_per_second == 0) return {Severity::kGood, compared};
  if (*asked > speed.bits_per_second) {
    return {Severity::kWarning, compared +
                                    ": it limits nothing, and a device may refuse it; where it was meant for a "
                                    "slower peer, that peer will lose datagrams. Use at most the slower port's "
                                    "speed, or 0"};
  }
  if (*asked * kWasteAt <= speed.bits_per_second) {
    return {Severity::kNote, fmt::format("{}: {}% of the port stays unused by this destination; use a higher rate, or "
                                         "0, unless the peer's port is that slow",
                                         compared, 100 - *asked * 100 / speed.bits_per_second)};
  }
  return {Severity::kGood, compared};
}

ibv_rate rate_for_path(PortSpeed local, PortSpeed remote) noexcept {
  const bool slower =
      remote.bits_per_second != 0 && (local.bits_per_second == 0 || remote.bits_per_second < local.bits_per_second);
  if (!slower) return IBV_RATE_MAX;
  return fastest_rate_within(remote.bits_per_second).value_or(IBV_RATE_2_5_GBPS);
}

}  // namespace verbena
