#include "device/log.h"

#include <cerrno>
#include <memory>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>

namespace verbena::device {

spdlog::logger& log() noexcept {
  static auto& logger = *[] {
    auto* made = new spdlog::logger("verbena", std::make_shared<spdlog::sinks::stderr_sink_mt>());  // outlives exit()
    made->set_pattern("verbena[%P] %l: %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return logger;
}

void set_log_level(std::string_view level) noexcept {
  const std::string name(level == "error" ? "err" : level == "warn" ? "warning" : level);
  log().set_level(spdlog::level::from_str(name));
}

int report(const Error& error) noexcept {
  log().info("{}", error.message);
  return error.system_errno != 0 ? error.system_errno : EINVAL;
}

}  // namespace verbena::device
