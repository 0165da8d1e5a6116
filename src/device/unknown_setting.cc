#include "device/unknown_setting.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "device/settings.h"

namespace verbena::device {
namespace {

constexpr std::string_view kPrefix = "VERBENA_";
constexpr std::size_t kFarthest = 4;  // more changes than this make another word

// Of the tests, benchmarks and build scripts.
constexpr std::array<std::string_view, 13> kOfDevelopment{
    "VERBENA_AH_",   "VERBENA_BENCH_",       "VERBENA_BUILD",   "VERBENA_CCACHE", "VERBENA_CI_",
    "VERBENA_E2E_",  "VERBENA_FUZZ",         "VERBENA_GOLDEN_", "VERBENA_LINT_",  "VERBENA_SANITIZE",
    "VERBENA_SOAK_", "VERBENA_THREAD_TESTS", "VERBENA_VM_",
};

bool is_of_others(std::string_view variable) {
  if (variable.find("_SERVICE_") != std::string_view::npos) return true;
  if (variable.ends_with("_PORT") || variable.find("_PORT_") != std::string_view::npos) return true;
  return std::any_of(kOfDevelopment.begin(), kOfDevelopment.end(),
                     [variable](std::string_view prefix) { return variable.starts_with(prefix); });
}

// How many letters must be put in, taken out or changed to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

std::string all_names() {
  std::string names;
  for (const SettingRow& row : kSettingRows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.variable);
  return names;
}

}  // namespace

std::optional<std::string> explain_unknown_setting(std::string_view variable) {
  if (!variable.starts_with(kPrefix) || is_of_others(variable)) return std::nullopt;
  const SettingRow* nearest = nullptr;
  std::size_t least = kFarthest + 1;
  for (const SettingRow& row : kSettingRows) {
    if (row.variable == variable) return std::nullopt;
    const bool longer = variable.starts_with(row.variable);  // VERBENA_LOG_LEVEL
    const std::size_t here = longer ? 0 : distance(row.variable, variable);
    if (here < least) {
      least = here;
      nearest = &row;
    }
  }
  if (nearest == nullptr) {
    return fmt::format("{} is no setting and changes nothing. The settings are {}", variable, all_names());
  }
  return fmt::format("{} is no setting and changes nothing. Did you mean {}?", variable, nearest->variable);
}

}  // namespace verbena::device
