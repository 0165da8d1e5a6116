#include "device/settings.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace verbena::device {
namespace {

Result<bool> parse_switch(std::string_view variable, const std::string& value) {
  if (value == "on" || value == "1") return true;
  if (value == "off" || value == "0") return false;
  return failure(ErrorCode::kInvalidArgument, fmt::format("{} is \"{}\"; it takes on or off", variable, value));
}

// Stores what `parse` makes of the variable, where it is set.
template <class Value, class Parse>
Status take(const std::optional<std::string>& value, Parse parse, Value& into) {
  if (!value) return {};
  auto parsed = parse(*value);
  if (!parsed) return tl::make_unexpected(parsed.error());
  into = std::move(*parsed);
  return {};
}

Result<std::string> parse_log_level(const std::string& value) {
  constexpr std::array kLevels{"off", "error", "warn", "info", "debug"};
  if (std::find(kLevels.begin(), kLevels.end(), value) != kLevels.end()) return value;
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("VERBENA_LOG is \"{}\"; it takes off, error, warn, info or debug", value));
}

}  // namespace

Result<Settings> parse_settings(const std::function<std::optional<std::string>(std::string_view)>& lookup) {
  Settings settings;
  const auto given = [&lookup](std::string_view variable) {
    auto value = lookup(variable);
    return value && !value->empty() ? value : std::nullopt;
  };
  const auto take_switch = [&given](std::string_view variable, bool& into) {
    return take(
        given(variable), [variable](const std::string& value) { return parse_switch(variable, value); }, into);
  };
  for (const Status& status :
       {take_switch("VERBENA_SHM", settings.shared_memory), take_switch("VERBENA_UDP", settings.udp),
        take_switch("VERBENA_STRICT", settings.strict), take_switch("VERBENA_CONGESTION", settings.congestion_control),
        take_switch("VERBENA_SELECTIVE_REPEAT", settings.selective_repeat),
        take(given("VERBENA_DEVICES"), parse_declarations, settings.devices),
        take(given("VERBENA_LIDS"), parse_lid_map, settings.lids),
        take(given("VERBENA_IMPAIR"), transport::parse_impair_spec, settings.impairment),
        take(given("VERBENA_LIMITS"), parse_limits, settings.limits),
        take(given("VERBENA_INJECT"), parse_injection, settings.injection),
        take(given("VERBENA_QUIRKS"), parse_quirks, settings.quirks),
        take(given("VERBENA_LOG"), parse_log_level, settings.log_level)}) {
    if (!status) return tl::make_unexpected(status.error());
  }
  if (const auto value = given("VERBENA_SUBNET")) settings.subnet_file = *value;
  if (const auto value = given("VERBENA_PCAP")) settings.pcap = *value;
  return settings;
}

}  // namespace verbena::device
