#include "device/settings.h"

#include <algorithm>

#include <fmt/format.h>

namespace verbena::device {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto item = text.substr(0, comma);
    if (!item.empty()) items.emplace_back(item);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return items;
}

Result<bool> parse_switch(std::string_view variable, const std::string& value) {
  if (value == "on" || value == "1") return true;
  if (value == "off" || value == "0") return false;
  return failure(ErrorCode::kInvalidArgument, fmt::format("{} is \"{}\"; it takes on or off", variable, value));
}

}  // namespace

Result<Settings> parse_settings(const std::function<std::optional<std::string>(std::string_view)>& lookup) {
  Settings settings;
  const auto given = [&lookup](std::string_view variable) {
    auto value = lookup(variable);
    return value && !value->empty() ? value : std::nullopt;
  };
  if (const auto value = given("VERBENA_DEVICES")) settings.interfaces = split(*value);
  for (const auto& [variable, target] :
       {std::pair{"VERBENA_SHM", &settings.shared_memory}, std::pair{"VERBENA_UDP", &settings.udp}}) {
    const auto value = given(variable);
    if (!value) continue;
    const auto parsed = parse_switch(variable, *value);
    if (!parsed) return tl::make_unexpected(parsed.error());
    *target = *parsed;
  }
  if (const auto value = given("VERBENA_IMPAIR")) settings.impairment = *value;
  if (const auto value = given("VERBENA_PCAP")) settings.pcap = *value;
  if (const auto value = given("VERBENA_LOG")) {
    constexpr std::array kLevels{"off", "error", "warn", "info", "debug"};
    if (std::find(kLevels.begin(), kLevels.end(), *value) == kLevels.end()) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("VERBENA_LOG is \"{}\"; it takes off, error, warn, info or debug", *value));
    }
    settings.log_level = *value;
  }
  return settings;
}

}  // namespace verbena::device
