#include "cli/exit_code.h"

#include <cstdio>

#include <fmt/format.h>

namespace verbena::cli {

int fail(std::string_view subcommand, std::string_view message) {
  fmt::print(stderr, "verbena {}: {}\n", subcommand, message);
  return kExitFailed;
}

int fail(std::string_view subcommand, const Error& error) {
  return fail(subcommand, error.message);
}

int fail_usage(std::string_view subcommand, std::string_view message) {
  fmt::print(stderr, "verbena {}: {}\nTry: verbena {} --help\n", subcommand, message, subcommand);
  return kExitUsage;
}

}  // namespace verbena::cli
