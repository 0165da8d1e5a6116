// `verbena run`: starts a verbs program on the software RNIC, by replacing this process with it.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/device_settings.h"
#include "cli/exit_code.h"
#include "cli/file_size_limit.h"
#include "cli/interposition.h"
#include "cli/subcommands.h"

namespace verbena::cli {
namespace {

constexpr const char* kName = "run";

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena run -- ibv_devinfo -v\n"
    "  verbena run -- ib_send_lat -c UD -x 1             the server; then the client, in a second terminal:\n"
    "  verbena run -- ib_send_lat -c UD -x 1 127.0.0.1\n"
    "  verbena run --devices eth0,lo -- ibv_devices      two devices, verbena0 on eth0 and verbena1 on lo\n"
    "  verbena run --impair loss=5%,seed=7 -- CMD        lose 5%, the same ones each time\n"
    "  verbena run --pcap /tmp/run.pcap -- CMD           then: tshark -r /tmp/run.pcap\n"
    "\n"
    "It sets LD_PRELOAD and LD_LIBRARY_PATH, in front of what they hold, and the variables named in brackets above; "
    "all\n"
    "else is inherited. Programs that are linked statically, or that are setuid, ignore LD_PRELOAD.\n"
    "Exit status: that of CMD; 1 where CMD cannot be started, 2 where no CMD is given.";

struct RunOptions {
  DeviceSettings devices;
  bool drop_in_only = false;
};

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

Variables compose(const RunOptions& options, const Interposition& interposition) {
  Variables variables = to_variables(options.devices, std::filesystem::current_path().string());
  if (!options.drop_in_only) {
    variables.emplace_back("LD_PRELOAD", compose_preload(interposition, environment("LD_PRELOAD")));
  }
  variables.emplace_back("LD_LIBRARY_PATH", compose_library_path(interposition, environment("LD_LIBRARY_PATH")));
  return variables;
}

// Returns only where the command could not be started.
int replace_process(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  return fail(kName, fmt::format("cannot start {}: {}", command.front(), std::strerror(errno)));
}

int run(const RunOptions& options, const std::vector<std::string>& command) {
  std::error_code error;
  const std::filesystem::path tool = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(kName, fmt::format("cannot read /proc/self/exe: {}", error.message()));
  const auto interposition = find_interposition(tool);
  if (!interposition) return fail(kName, interposition.error());
  apply(compose(options, *interposition));
  return replace_process(command);
}

// The command with or without "--" in front. What looks like an option of ours but is none must not become a command.
int check_and_run(const RunOptions& options, std::vector<std::string> command, const Request& request) {
  if (!command.empty() && command.front().front() == '-') {
    return fail_usage(kName, fmt::format("unknown option {} (write -- before the command)", command.front()));
  }
  if (request.after_dashes) {
    if (!command.empty()) command.emplace_back("--");
    command.insert(command.end(), request.after_dashes->begin(), request.after_dashes->end());
  }
  if (command.empty() || command.front().empty()) return fail_usage(kName, "no command given");
  if (const int code = apply_checked(kName, options.devices); code != kExitOk) return code;
  // The command might not say why it finds no device.
  if (const std::string why = file_size_shortage(file_size_limit()); !why.empty()) return fail(kName, why);
  return run(options, command);
}

}  // namespace

void add_run(CLI::App& tool, Request& request) {
  auto options = std::make_shared<RunOptions>();
  auto* subcommand =
      tool.add_subcommand(kName, "Run a verbs program on the software RNIC: verbena run [OPTIONS] -- CMD [ARGS...]");
  add_device_settings(*subcommand, options->devices);
  subcommand->add_flag("--dropin-only", options->drop_in_only,
                       "Set LD_LIBRARY_PATH only, not LD_PRELOAD: to try what a program that calls dlopen() meets");
  subcommand->prefix_command();
  subcommand->footer(kFooter);
  subcommand->callback([&request, options, subcommand] {
    request.action = [&request, options, command = subcommand->remaining()] {
      return check_and_run(*options, command, request);
    };
  });
}

}  // namespace verbena::cli
