#include "cli/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/device_settings.h"
#include "cli/error_output.h"
#include "cli/exit_code.h"
#include "cli/subcommands.h"

namespace verbena::cli {
namespace {

constexpr const char* kFooter =
    "Start here:\n"
    "  verbena demo                        see it work: two processes, one software RNIC, managed address handles\n"
    "  verbena run -- ibv_devinfo          run any verbs program on the software RNIC\n"
    "  verbena doctor node7                what is wrong here, or on the way to node7? and does data move?\n"
    "  verbena doctor explain wc 12        what does this error mean, and what now?\n"
    "  verbena drops                       why are datagrams missing? asks every running process\n"
    "\n"
    "Each subcommand has examples of its own: verbena SUBCOMMAND --help\n"
    "Exit status: 0 done, 1 failed, 2 the command line is wrong.";

// "run" for `verbena run ...`, else "".
std::string chosen_subcommand(const CLI::App& tool) {
  const auto chosen = tool.get_subcommands();
  return chosen.empty() ? std::string() : chosen.front()->get_name();
}

int explain(const CLI::App& tool, const CLI::ParseError& error) {
  const std::string subcommand = chosen_subcommand(tool);
  const std::string name = subcommand.empty() ? "verbena" : "verbena " + subcommand;
  print_error("{}: {}\nTry: {} --help\n", name, error.what(), name);
  return kExitUsage;
}

struct UnknownSubcommand {
  std::string under;  // "verbena", or "verbena ah" for a word behind that
  std::string word;
};

// The first word that is no option must name a subcommand, whatever else is asked for: the parser would rather answer
// --help. So must the next one behind a subcommand that has subcommands and does nothing without.
std::optional<UnknownSubcommand> unknown_subcommand(const CLI::App& tool, const std::vector<std::string>& words) {
  const CLI::App* app = &tool;
  std::string under = "verbena";
  for (const std::string& word : words) {
    if (!word.empty() && word[0] == '-') continue;
    const auto known = app->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (known.empty()) return UnknownSubcommand{under, word.empty() ? "\"\"" : word};
    app = known.front();
    if (app->get_require_subcommand_min() == 0) return std::nullopt;
    under += " " + word;
  }
  return std::nullopt;
}

// A value that a script left empty is a mistake, but for the settings of the software device, where it is none.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == kDeviceSettings) continue;
    for (const std::string& value : option->results()) {
      if (value.empty())
        throw CLI::ValidationError(option->get_name(), "the value is empty; leave it out, or give one");
    }
  }
  for (const CLI::App* chosen : app.get_subcommands()) refuse_empty_values(*chosen);
}

// Output that did not reach its reader is a failure: a full disk, a closed pipe.
int checked(int code) {
  const bool lost_earlier = std::ferror(stdout) != 0;  // and errno is no longer about that
  errno = 0;
  if (std::fflush(stdout) == 0 && !lost_earlier) return code;
  print_error("verbena: cannot write the output{}{}\n", errno != 0 ? ": " : "", errno != 0 ? std::strerror(errno) : "");
  return code == kExitOk ? kExitFailed : code;
}

// Takes the command of `verbena run ... -- COMMAND` away, so that no word of it is ever read as an option of ours.
std::vector<std::string> split_off_command(int argc, const char* const* argv, Request& request) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.front() != "run") return words;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return words;
  request.after_dashes.emplace(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return words;
}

int parse_and_act(int argc, const char* const* argv) {
  CLI::App tool{"Dependable RDMA datagrams: a software RNIC and managed address handles.", "verbena"};
  tool.require_subcommand(1);
  tool.footer(kFooter);
  Request request;
  for (auto* add : {add_run, add_demo, add_ping, add_devices, add_gids, add_drops, add_ah, add_doctor, add_version,
                    add_demo_responder}) {
    add(tool, request);
  }
  if (argc <= 1) {
    print_error("{}", tool.help());
    return kExitUsage;
  }
  try {
    std::vector<std::string> words = split_off_command(argc, argv, request);
    if (const auto unknown = unknown_subcommand(tool, words)) {
      print_error("{0}: there is no subcommand {1}\nTry: {0} --help\n", unknown->under, unknown->word);
      return kExitUsage;
    }
    std::reverse(words.begin(), words.end());  // as the parser wants them
    tool.parse(std::move(words));
    refuse_empty_values(tool);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", tool.help());
    return checked(kExitOk);
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return checked(kExitOk);
  } catch (const CLI::ParseError& error) {
    return explain(tool, error);
  }
  return checked(request.action());
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  try {
    return parse_and_act(argc, argv);
  } catch (const std::exception& error) {
    print_error("verbena: {}\n", error.what());
    return kExitFailed;
  }
}

}  // namespace verbena::cli
