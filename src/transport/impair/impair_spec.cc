#include "transport/impair/impair_spec.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

namespace verbena::transport {
namespace {

constexpr std::string_view kKeys = "loss, dup, reorder, corrupt, delay, jitter, seed";

template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "5%" or "0.05".
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

// "10us", "1.5ms".
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

std::optional<std::uint64_t> parse_seed(std::string_view text) {
  const auto number = take_number<std::uint64_t>(text);
  return text.empty() ? number : std::nullopt;
}

tl::unexpected<Error> wrong(std::string_view part, std::string_view why) {
  return failure(ErrorCode::kInvalidArgument,
                 "VERBENA_IMPAIR: \"" + std::string(part) + "\" " + std::string(why) + ".");
}

template <class Value>
Status put(std::optional<Value> parsed, Value& into, std::string_view part, std::string_view wanted) {
  if (!parsed) return wrong(part, wanted);
  into = *parsed;
  return {};
}

Status put_value(ImpairSpec& spec, std::string_view part, std::string_view key, std::string_view value) {
  constexpr std::string_view kProbability = "is no probability: write 5%, 0.1% or 0.05, from 0% to 100%";
  constexpr std::string_view kDuration = "is no time: write 500ns, 10us, 1.5ms or 1s, up to 60s";
  if (key == "loss") return put(parse_probability(value), spec.loss, part, kProbability);
  if (key == "dup") return put(parse_probability(value), spec.duplicate, part, kProbability);
  if (key == "reorder") return put(parse_probability(value), spec.reorder, part, kProbability);
  if (key == "corrupt") return put(parse_probability(value), spec.corrupt, part, kProbability);
  if (key == "delay") return put(parse_duration(value), spec.delay, part, kDuration);
  if (key == "jitter") return put(parse_duration(value), spec.jitter, part, kDuration);
  if (key == "seed") return put(parse_seed(value), spec.seed, part, "is no seed: write a whole number");
  return wrong(part, "is not known: there are " + std::string(kKeys));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<ImpairSpec> parse_impair_spec(std::string_view text) {
  ImpairSpec spec;
  std::string seen = ",";
  text = trimmed(text);
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return wrong(part, "is not of the form name=value");
    const auto key = trimmed(part.substr(0, equals));
    if (seen.find("," + std::string(key) + ",") != std::string::npos) return wrong(part, "comes a second time");
    seen += std::string(key) + ",";
    const auto put = put_value(spec, part, key, trimmed(part.substr(equals + 1)));
    if (!put) return tl::make_unexpected(put.error());
  }
  return spec;
}

}  // namespace verbena::transport
