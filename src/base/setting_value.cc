#include "base/setting_value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace verbena {
namespace {

template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<double> parse_probability(std::string_view text) {
  auto number = take_number<double>(text);
  if (!number) return std::nullopt;
  if (text == "%") {
    *number /= 100;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  if (!(*number >= 0 && *number <= 1)) return std::nullopt;
  return number;
}

std::optional<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  static constexpr std::array<Unit, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  static constexpr double kLongestNs = 60e9;
  const auto number = take_number<double>(text);
  if (!number || !(*number >= 0)) return std::nullopt;
  for (const auto& unit : kUnits) {
    if (text == unit.name && *number * unit.ns <= kLongestNs) return Duration(std::llround(*number * unit.ns));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  const auto number = take_number<std::uint64_t>(text);
  return text.empty() ? number : std::nullopt;
}

tl::unexpected<Error> wrong_part(std::string_view variable, std::string_view part, std::string_view why) {
  return failure(ErrorCode::kInvalidArgument,
                 std::string(variable) + ": \"" + std::string(part) + "\" " + std::string(why) + ".");
}

Status for_each_part(
    std::string_view variable, std::string_view text,
    const std::function<Status(std::string_view part, std::string_view key, std::string_view value)>& put) {
  std::string seen = ",";
  text = trimmed(text);
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return wrong_part(variable, part, "is not of the form name=value");
    const auto key = trimmed(part.substr(0, equals));
    if (seen.find("," + std::string(key) + ",") != std::string::npos) {
      return wrong_part(variable, part, "comes a second time");
    }
    seen += std::string(key) + ",";
    if (auto status = put(part, key, trimmed(part.substr(equals + 1))); !status) return status;
  }
  return {};
}

}  // namespace verbena
