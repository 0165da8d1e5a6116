// What the RNIC tells its user: to standard error, as VERBENA_LOG says. Never on the data path of a packet that goes
// well.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "verbena/result.h"

namespace verbena::device {

enum class Severity { kDebug, kInfo, kWarning, kError };
inline constexpr std::size_t kSeverities = 4;

// One sentence, on a line of its own.
void log(Severity severity, std::string_view sentence) noexcept;

// The same sentence once, and so many different ones of a severity that a program which is refused in a loop does not
// bury its own output; what is left out is written at level info.
void log_once(Severity severity, std::string_view sentence) noexcept;

// `level`: one of those of VERBENA_LOG.
void set_log_level(std::string_view level) noexcept;

// Writes the error's sentence at level info (a program may probe on purpose), or as an error where descriptors have run
// out (nobody does that on purpose), and returns its errno.
int report(const Error& error) noexcept;
// The same, as a warning, each sentence once: of what no program tries to find out what a device can do. That there is
// no room for more is told as by report().
int report_once(const Error& error) noexcept;

// What errno says about `what`, which was tried: for a limit also which one, and what raises it.
Error system_error(const std::string& what);

}  // namespace verbena::device
