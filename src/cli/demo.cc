// `verbena demo`: the main job in a few seconds. Two processes on this host exchange datagrams on the software RNIC,
// once with an address handle made for each send and once through the directory.
#include <cstdlib>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/child_process.h"
#include "cli/demo_report.h"
#include "cli/demo_run.h"
#include "cli/device_settings.h"
#include "cli/exit_code.h"
#include "cli/json_text.h"
#include "cli/ping_datagram.h"
#include "cli/port_option.h"
#include "cli/stop_signal.h"
#include "cli/subcommands.h"

namespace verbena::cli {
namespace {

constexpr const char* kName = "demo";

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena demo                               16 destinations, 20000 datagrams a measurement, a few seconds\n"
    "  verbena demo --destinations 64 --size 1024\n"
    "  verbena demo --no-shm                      by UDP packets instead of shared memory\n"
    "  verbena demo --json | jq .directory\n"
    "\n"
    "It starts a second process that answers, sends to its queue pairs in turn, and ends both. Nothing needs to be "
    "set\n"
    "up, no root, no hardware.";

struct DemoOptions {
  DemoPlan plan;
  DeviceSettings settings;
  bool json = false;
};

bool wants_color() {
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

int demo(const DemoOptions& options) {
  catch_stop_signals();
  if (const int code = apply_checked(kName, options.settings); code != kExitOk) return code;
  // Before a device is open: it would not be the child's.
  auto responder = ChildProcess::start(responder_arguments(options.plan));
  if (!responder) return fail(kName, responder.error());
  const auto report = run_demo(*responder, options.plan);
  if (!report) return fail(kName, report.error());
  if (options.json) {
    fmt::print("{}\n", json_text(demo_to_json(*report)));
  } else {
    fmt::print("{}", render_demo(*report, wants_color()));
  }
  return kExitOk;
}

}  // namespace

void add_demo(CLI::App& tool, Request& request) {
  auto options = std::make_shared<DemoOptions>();
  auto* subcommand =
      tool.add_subcommand(kName, "See it work: two processes, one software RNIC, managed address handles");
  subcommand->add_option("-n,--destinations", options->plan.destinations, "Queue pairs to send to, in turn")
      ->check(CLI::Range(1, 256))
      ->type_name("COUNT")
      ->capture_default_str();
  subcommand->add_option("-c,--count", options->plan.count, "Datagrams of each measurement, at most")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("COUNT")
      ->capture_default_str();
  subcommand->add_option("-s,--size", options->plan.size, "Bytes of payload in each")
      ->check(CLI::Range(kPingHeaderBytes, std::size_t{4096}))
      ->type_name("BYTES")
      ->capture_default_str();
  add_port_option(*subcommand, options->plan.port, "The device, or its port, to use; without it, by route");
  subcommand->add_flag("--json", options->json, "Print JSON, times in nanoseconds");
  add_device_settings(*subcommand, options->settings);
  subcommand->footer(kFooter);
  subcommand->callback([&request, options] {
    options->plan.progress = !options->json;
    request.action = [options] { return demo(*options); };
  });
}

}  // namespace verbena::cli
