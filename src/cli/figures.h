// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "base/instant.h"

namespace verbena::cli {

// Three significant digits with the unit that fits: "812 ns", "1.24 us", "20.0 ms", "3.50 s".
std::string format_duration(Duration duration);

// "1,234,567".
std::string format_count(std::uint64_t count);

// Three significant digits: "812/s", "12.4 k/s", "3.10 M/s".
std::string format_rate(double per_second);

// `part` of `whole` in percent, 0 where there is no whole. Never rounded to 0% or 100% where it is not that: "<0.01%",
// ">99.99%".
double percentage(std::uint64_t part, std::uint64_t whole) noexcept;
std::string format_percentage(std::uint64_t part, std::uint64_t whole);

}  // namespace verbena::cli
