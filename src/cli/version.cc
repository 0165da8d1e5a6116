// `verbena version`: which Verbena this is.
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/subcommands.h"

namespace verbena::cli {

void add_version(CLI::App& tool, Request& request) {
  const std::string text = fmt::format("verbena {}\n", VERBENA_VERSION);
  tool.set_version_flag("--version", fmt::format("verbena {}", VERBENA_VERSION), "Print the version and exit");
  auto* version = tool.add_subcommand("version", "Print the version");
  version->callback([&request, text] {
    request.action = [text] {
      fmt::print("{}", text);
      return kExitOk;
    };
  });
}

}  // namespace verbena::cli
