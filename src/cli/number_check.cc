#include "cli/number_check.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace verbena::cli {

CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](std::string& text) {
    double value = 0;
    const bool within = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;  // false of nan
    return within ? std::string() : fmt::format("{} is not a number from {} to {}", text, least, most);
  };
  return {check, fmt::format("FLOAT in [{} - {}]", least, most)};
}

CLI::Validator positive_whole_number() {
  const auto check = [](std::string& text) {
    std::uint64_t value = 0;
    const bool well = !text.starts_with('-') && CLI::detail::lexical_cast(text, value) && value > 0;
    return well ? std::string() : fmt::format("{} is not a positive whole number", text);
  };
  return {check, "POSITIVE"};
}

}  // namespace verbena::cli
