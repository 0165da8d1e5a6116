// What the tool exits with, and the one way in which a failure is said.
#pragma once

#include <string_view>

#include "verbena/result.h"

namespace verbena::cli {

// `verbena run` adds a fourth case: where the command was started, its own exit status.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Writes "verbena SUBCOMMAND: MESSAGE" to stderr and returns kExitFailed.
int fail(std::string_view subcommand, std::string_view message);
// Also names the setting that asked for such an error, where one did.
int fail(std::string_view subcommand, const Error& error);

// As fail(), for what the user wrote wrongly: adds where to read on, and returns kExitUsage.
int fail_usage(std::string_view subcommand, std::string_view message);

}  // namespace verbena::cli
