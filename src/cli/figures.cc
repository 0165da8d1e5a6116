#include "cli/figures.h"

#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace verbena::cli {
namespace {

// Three significant digits, for 0 <= value < 1000 after the scaling.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

template <std::size_t N>
std::string scaled(double value, const std::array<std::string_view, N>& units) {
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < N) {
    value /= 1000;
    ++unit;
  }
  return three_digits(value) + std::string(units[unit]);
}

}  // namespace

std::string format_duration(Duration duration) {
  constexpr std::array<std::string_view, 4> kUnits{" ns", " us", " ms", " s"};
  const double ns = static_cast<double>(duration.count());
  if (ns >= 0 && ns < 999.5) return fmt::format("{:.0f} ns", ns);
  return scaled(ns, kUnits);
}

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string format_rate(double per_second) {
  constexpr std::array<std::string_view, 4> kUnits{"/s", " k/s", " M/s", " G/s"};
  return scaled(per_second, kUnits);
}

double percentage(std::uint64_t part, std::uint64_t whole) noexcept {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string format_percentage(std::uint64_t part, std::uint64_t whole) {
  const double percent = percentage(part, whole);
  if (part != 0 && percent < 0.01) return "<0.01%";
  if (part < whole && percent > 99.99) return ">99.99%";
  if (part == 0 || part == whole) return fmt::format("{:.0f}%", percent);
  return fmt::format("{:.2f}%", percent);
}

}  // namespace verbena::cli
