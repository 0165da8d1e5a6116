#include "cli/rehearsal_note.h"

#include <fmt/format.h>

namespace verbena::cli {
namespace {

// Whether `inject` has a part CALL.fail=ERRNO whose errno the message names.
bool asks_for(std::string_view inject, std::string_view message) {
  constexpr std::string_view kFail = ".fail=";
  for (std::size_t at = inject.find(kFail); at != std::string_view::npos; at = inject.find(kFail, at + 1)) {
    std::string_view name = inject.substr(at + kFail.size());
    name = name.substr(0, name.find_first_of(", "));
    if (!name.empty() && message.find(name) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::string rehearsal_note(std::string_view message, std::string_view inject, std::string_view limits) {
  if (asks_for(inject, message)) return fmt::format("; such failures are asked for (VERBENA_INJECT is {})", inject);
  if (!limits.empty() && message.find("ENOMEM") != std::string_view::npos) {
    return fmt::format("; the device's limits are lowered on purpose (VERBENA_LIMITS is {})", limits);
  }
  return {};
}

std::string rehearsal_note(const Error& error, std::string_view inject, std::string_view limits) {
  if (error.code == ErrorCode::kTimedOut && inject.find(".delay=") != std::string_view::npos) {
    return fmt::format("; delays that can lead to this are asked for (VERBENA_INJECT is {})", inject);
  }
  return rehearsal_note(std::string_view(error.message), inject, limits);
}

}  // namespace verbena::cli
