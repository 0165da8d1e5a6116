// The subcommands: one function and one file each. A function adds its options, help and examples to the tool's parser;
// where the user chose it, parsing stores in `request.action` what is to be done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
}

namespace verbena::cli {

struct Request {
  // Does the work and returns the exit code.
  std::function<int()> action;
  // `verbena run` only: what follows the first "--", which the parser never sees. Nothing where there was no "--".
  std::optional<std::vector<std::string>> after_dashes;
};

void add_run(CLI::App& tool, Request& request);
void add_devices(CLI::App& tool, Request& request);
void add_gids(CLI::App& tool, Request& request);
void add_ah(CLI::App& tool, Request& request);
void add_drops(CLI::App& tool, Request& request);
void add_doctor(CLI::App& tool, Request& request);
void add_ping(CLI::App& tool, Request& request);
void add_demo(CLI::App& tool, Request& request);
void add_demo_responder(CLI::App& tool, Request& request);
void add_version(CLI::App& tool, Request& request);

}  // namespace verbena::cli
