// The static rate of an address handle against the speed of the ports it leads between.
//
// All numbers are nominal, as the names of ibv_rate have them: IBV_RATE_100_GBPS and a 4x EDR port are both 100 Gbit/s,
// though the line signals up to 6% faster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <infiniband/verbs.h>

#include "verbena/export.h"
#include "verbena/preflight.h"
#include "verbena/result.h"

namespace verbena {

struct PortSpeed {
  std::uint64_t bits_per_second = 0;  // 0: not known

  friend bool operator==(const PortSpeed&, const PortSpeed&) = default;
};

// From the fields of ibv_port_attr. `active_speed` is active_speed_ex where the device fills that. Lanes or a speed
// that nobody has defined give "not known".
VERBENA_API PortSpeed port_speed(std::uint32_t active_width, std::uint32_t active_speed) noexcept;

// Nothing for IBV_RATE_MAX, which is the port's speed, and for a number that is no ibv_rate.
VERBENA_API std::optional<std::uint64_t> bits_per_second(ibv_rate rate) noexcept;

// The fastest that is not above it; nothing below 2.5 Gbit/s, the slowest there is.
VERBENA_API std::optional<ibv_rate> fastest_rate_within(std::uint64_t bits_per_second) noexcept;

// "25 Gbit/s", "the port's speed", "no ibv_rate (1)".
VERBENA_API std::string to_string(ibv_rate rate);

// Reads "25g", "2.5g", "100G", "max". Errors: kInvalidArgument names the rates there are.
VERBENA_API Result<ibv_rate> parse_rate(std::string_view text);

struct RateAdvice {
  Severity severity = Severity::kGood;
  std::string text;  // one sentence
};

// Above the port's speed the limit does nothing, and where the peer is slower its side loses: a warning. Below a
// quarter of it most of the port stays unused: a note. No ibv_rate: a failure.
VERBENA_API RateAdvice advise_rate(ibv_rate rate, PortSpeed speed);

// What keeps the faster of two ports from flooding the slower: IBV_RATE_MAX where the remote port is not known, or not
// slower; else the fastest rate that the remote port takes in.
VERBENA_API ibv_rate rate_for_path(PortSpeed local, PortSpeed remote) noexcept;

}  // namespace verbena
