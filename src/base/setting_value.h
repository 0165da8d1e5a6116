// The values that settings are made of: numbers with their units, and lists of KEY=VALUE.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/instant.h"
#include "verbena/result.h"

namespace verbena {

// "5%" or "0.05", from 0 to 1.
std::optional<double> parse_probability(std::string_view text);

// "500ns", "10us", "1.5ms", "1s", up to a minute.
std::optional<Duration> parse_duration(std::string_view text);

// Digits only.
std::optional<std::uint64_t> parse_whole(std::string_view text);

// What is wrong with a part of a setting: `VERBENA_X: "part" why.`
tl::unexpected<Error> wrong_part(std::string_view variable, std::string_view part, std::string_view why);

// Calls `put` for each KEY=VALUE of a list with commas, blanks trimmed, until it fails. kInvalidArgument for a part
// without `=` and for a key that comes a second time; "" is an empty list.
Status for_each_part(
    std::string_view variable, std::string_view text,
    const std::function<Status(std::string_view part, std::string_view key, std::string_view value)>& put);

// Stores what was parsed, or says why the part is wrong.
template <class Value>
Status put_part(std::string_view variable, std::string_view part, std::optional<Value> parsed, Value& into,
                std::string_view wanted) {
  if (!parsed) return wrong_part(variable, part, wanted);
  into = *parsed;
  return {};
}

inline constexpr std::string_view kWantsProbability = "is no probability: write 5%, 0.1% or 0.05, from 0% to 100%";
inline constexpr std::string_view kWantsDuration = "is no time: write 500ns, 10us, 1.5ms or 1s, up to 60s";
inline constexpr std::string_view kWantsWhole = "is no whole number: write digits only";

}  // namespace verbena
