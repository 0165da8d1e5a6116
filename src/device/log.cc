// The one file that includes the logging library: its headers cost seconds of every build.
#include "device/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "transport/system_error.h"

namespace verbena::device {
namespace {

spdlog::logger& logger() noexcept {
  static auto& logger = *[] {
    auto* made = new spdlog::logger("verbena", std::make_shared<spdlog::sinks::stderr_sink_mt>());  // outlives exit()
    made->set_pattern("verbena[%P] %l: %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return logger;
}

spdlog::level::level_enum level_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::kDebug:
      return spdlog::level::debug;
    case Severity::kInfo:
      return spdlog::level::info;
    case Severity::kWarning:
      return spdlog::level::warn;
    case Severity::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// What verbs returns for it.
int errno_of(const Error& error) noexcept {
  return error.system_errno != 0 ? error.system_errno : EINVAL;
}

}  // namespace

void log(Severity severity, std::string_view sentence) noexcept {
  logger().log(level_of(severity), spdlog::string_view_t(sentence.data(), sentence.size()));
}

void log_once(Severity severity, std::string_view sentence) noexcept {
  constexpr std::size_t kMost = 20;
  struct Told {
    std::array<std::size_t, kMost> hashes{};
    std::size_t count = 0;
  };
  static std::mutex mutex;
  static std::array<Told, kSeverities> told_at{};  // guarded by mutex
  if (!logger().should_log(level_of(severity))) return;
  const std::size_t hash = std::hash<std::string_view>{}(sentence);
  bool first = false;
  bool last = false;
  {
    const std::lock_guard lock(mutex);
    auto& [hashes, count] = told_at[static_cast<std::size_t>(severity)];
    const auto end = hashes.begin() + static_cast<std::ptrdiff_t>(count);
    first = count < kMost && std::find(hashes.begin(), end, hash) == end;
    if (first) hashes[count++] = hash;
    last = first && count == kMost;
  }
  log(first ? severity : Severity::kInfo, sentence);
  if (last) log(severity, "More of this kind is written with VERBENA_LOG=info");
}

void set_log_level(std::string_view level) noexcept {
  const std::string name(level == "error" ? "err" : level == "warn" ? "warning" : level);
  logger().set_level(spdlog::level::from_str(name));
}

Error system_error(const std::string& what) {
  return transport::system_failure(what).value();
}

int report(const Error& error) noexcept {
  // What stands in the way of everything else is told unasked.
  const bool no_descriptors = error.system_errno == EMFILE || error.system_errno == ENFILE;
  log(no_descriptors ? Severity::kError : Severity::kInfo, error.message);
  return errno_of(error);
}

int report_once(const Error& error) noexcept {
  if (error.code == ErrorCode::kExhausted || error.system_errno == ENOMEM) return report(error);
  log_once(Severity::kWarning, error.message);
  return errno_of(error);
}

}  // namespace verbena::device
