#include "cli/exit_code.h"

#include <cstdlib>

#include "cli/error_output.h"
#include "cli/rehearsal_note.h"

namespace verbena::cli {

int fail(std::string_view subcommand, std::string_view message) {
  print_error("verbena {}: {}\n", subcommand, message);
  return kExitFailed;
}

int fail(std::string_view subcommand, const Error& error) {
  const auto value_of = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string_view(value == nullptr ? "" : value);
  };
  return fail(subcommand,
              error.message + rehearsal_note(error, value_of("VERBENA_INJECT"), value_of("VERBENA_LIMITS")));
}

int fail_usage(std::string_view subcommand, std::string_view message) {
  print_error("verbena {}: {}\nTry: verbena {} --help\n", subcommand, message, subcommand);
  return kExitUsage;
}

}  // namespace verbena::cli
