// `verbena ah`: the address-handle directories of running processes, from outside.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/directory_report.h"
#include "cli/directory_source.h"
#include "cli/exit_code.h"
#include "cli/json_text.h"
#include "cli/number_check.h"
#include "cli/subcommands.h"
#include "cli/watch.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "ah";
constexpr Duration kPatience = 2s;

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena ah top                         each second: handles, hits, creations and their latency, by directory\n"
    "  verbena ah top --once --json           every count and the whole histogram, once\n"
    "  verbena ah dump --pid 4711             the destinations of one process: state, source, who holds them\n"
    "  verbena ah dump --json | jq '.processes[].entries[] | select(.state == \"failed\")'\n"
    "\n"
    "It asks the processes in this network namespace that manage address handles with libverbena; they go on "
    "meanwhile.\n"
    "Those of other users answer only to root. docs/address-handles.md says what each count means.";

struct AhOptions {
  bool json = false;
  bool once = false;
  double interval_s = 1.0;
  std::uint32_t pid = 0;  // 0: all
};

// Who asks for one process and gets nothing of it has failed.
int show_once(const AhOptions& options, Ask what) {
  const auto survey = survey_directories(what, options.pid, kPatience);
  if (!survey) return fail(kName, survey.error());
  const bool silent = options.pid != 0 && survey->processes.empty();
  if (options.json) {
    fmt::print("{}\n", json_text(directories_to_json(*survey, what)));
  } else if (!silent) {
    fmt::print("{}", what == Ask::kCounts ? render_directories(*survey) : render_entries(*survey));
  }
  if (options.pid == 0 && survey->shortage) return fail(kName, *survey->shortage);
  if (!silent) return kExitOk;
  return fail(kName, fmt::format("process {} showed no directory: {}", options.pid, survey->silent.front().reason));
}

int top(const AhOptions& options) {
  if (options.once) return show_once(options, Ask::kCounts);
  return run_watch<DirectorySurvey>(
      {.subcommand = kName,
       .interval_s = options.interval_s,
       .on_screen = !options.json,
       .look = [&options] { return survey_directories(Ask::kCounts, options.pid, kPatience); },
       .render =
           [&options](const DirectorySurvey& seen, const auto& earlier) {
             if (options.json) return json_line(directories_to_json(seen, Ask::kCounts));
             return earlier ? render_directories(seen, earlier->seen, earlier->ago) : render_directories(seen);
           }});
}

void add_common(CLI::App& subcommand, AhOptions& options) {
  subcommand.add_flag("--json", options.json, "Print JSON");
  subcommand.add_option("--pid", options.pid, "Only this process")->check(positive_whole_number())->type_name("PID");
}

}  // namespace

void add_ah(CLI::App& tool, Request& request) {
  auto options = std::make_shared<AhOptions>();
  auto* subcommand = tool.add_subcommand(kName, "Look at the address-handle directories of running processes");
  subcommand->require_subcommand(1);
  subcommand->footer(kFooter);
  auto* watching = subcommand->add_subcommand("top", "Counts and rates of each directory, again and again");
  add_common(*watching, *options);
  watching->add_flag("--once", options->once, "Once, with totals in place of rates");
  watching->add_option("--interval", options->interval_s, "Seconds between two looks")
      ->check(number_between(0.1, 3600))
      ->type_name("SECONDS")
      ->capture_default_str();
  watching->callback([&request, options] { request.action = [options] { return top(*options); }; });
  auto* dumping = subcommand->add_subcommand("dump", "Every entry: destination, state, source, who holds it");
  add_common(*dumping, *options);
  dumping->callback([&request, options] { request.action = [options] { return show_once(*options, Ask::kEntries); }; });
}

}  // namespace verbena::cli
