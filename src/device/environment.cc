#include "device/environment.h"

#include <cstdlib>
#include <string>

#include "device/log.h"

namespace verbena::device {
namespace {

Result<Settings> read_environment() {
  auto settings = parse_settings([](std::string_view variable) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(variable).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (settings) {
    set_log_level(settings->log_level);
  } else {
    log(Severity::kError, settings.error().message);
  }
  return settings;
}

}  // namespace

const Result<Settings>& environment() noexcept {
  static const auto& settings = *new Result<Settings>(read_environment());
  return settings;
}

}  // namespace verbena::device
