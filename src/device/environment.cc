#include "device/environment.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include "device/log.h"
#include "device/unknown_setting.h"

namespace verbena::device {
namespace {

void tell_of_unknown_settings() {
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const auto said = explain_unknown_setting(text.substr(0, text.find('=')))) log(Severity::kError, *said);
  }
}

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
  tell_of_unknown_settings();
  return settings;
}

}  // namespace

const Result<Settings>& environment() noexcept {
  static const auto& settings = *new Result<Settings>(read_environment());
  return settings;
}

}  // namespace verbena::device
