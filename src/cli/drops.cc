// `verbena drops`: where do datagrams vanish? Reads the named drops and counters of running processes from outside.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/clock.h"
#include "cli/counter_source.h"
#include "cli/drop_report.h"
#include "cli/exit_code.h"
#include "cli/json_text.h"
#include "cli/number_check.h"
#include "cli/subcommands.h"
#include "cli/watch.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "drops";
constexpr Duration kPatience = 500ms;

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena drops                          what each process dropped, and why\n"
    "  verbena drops --watch                  the same, each second, with rates; Ctrl-C ends it\n"
    "  verbena drops --pid 4711 --all         every counter of one process, zeros too\n"
    "  verbena drops --json | jq '.processes[].devices[].drops'\n"
    "\n"
    "It asks the processes in this network namespace that use the software RNIC; they go on meanwhile. Those of other\n"
    "users answer only to root. A process' counters end with it: ask while it runs.";

struct DropsOptions {
  bool json = false;
  bool all = false;
  bool watch = false;
  double interval_s = 1.0;
  std::uint32_t pid = 0;  // 0: all
};

std::int64_t time_of_day_ns() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<CounterSurvey> survey(const DropsOptions& options) {
  auto all = survey_counters(kPatience);
  if (!all || options.pid == 0) return all;
  CounterSurvey only = only_process(*all, options.pid);
  if (only.processes.empty() && only.shortage) return tl::make_unexpected(*only.shortage);
  if (only.processes.empty() && only.silent.empty()) {
    return failure(ErrorCode::kNotFound,
                   fmt::format("process {} does not use the software RNIC in this network namespace", options.pid));
  }
  return only;
}

int show_once(const DropsOptions& options) {
  const auto seen = survey(options);
  if (!seen) return fail(kName, seen.error());
  const bool silent = options.pid != 0 && seen->processes.empty();
  if (options.json) {
    fmt::print("{}\n", json_text(drops_to_json(*seen)));
  } else if (!silent) {
    fmt::print("{}", render_drops(*seen, {options.all, time_of_day_ns()}));
  }
  if (options.pid == 0 && seen->shortage) return fail(kName, *seen->shortage);
  if (!silent) return kExitOk;
  return fail(kName, fmt::format("process {} gave no counters: {}", options.pid, seen->silent.front().reason));
}

int watch(const DropsOptions& options) {
  return run_watch<CounterSurvey>({.subcommand = kName,
                                   .interval_s = options.interval_s,
                                   .on_screen = !options.json,
                                   .look = [&options] { return survey(options); },
                                   .render =
                                       [&options](const CounterSurvey& seen, const auto& earlier) {
                                         if (options.json) return json_line(drops_to_json(seen));
                                         const ReportStyle style{options.all, time_of_day_ns()};
                                         return earlier ? render_drops(seen, style, earlier->seen, earlier->ago)
                                                        : render_drops(seen, style);
                                       }});
}

}  // namespace

void add_drops(CLI::App& tool, Request& request) {
  auto options = std::make_shared<DropsOptions>();
  auto* subcommand = tool.add_subcommand(kName, "Say which datagrams vanished in running processes, and why");
  subcommand->add_flag("--json", options->json, "Print JSON: every row, zeros too; with --watch one object a line");
  subcommand->add_flag("--all", options->all, "Also show what is zero");
  subcommand->add_option("--pid", options->pid, "Only this process")->check(positive_whole_number())->type_name("PID");
  subcommand->add_flag("--watch", options->watch, "Again and again, with rates, until Ctrl-C");
  subcommand->add_option("--interval", options->interval_s, "Seconds between two looks of --watch")
      ->check(number_between(0.1, 3600))
      ->type_name("SECONDS")
      ->capture_default_str();
  subcommand->footer(kFooter);
  subcommand->callback([&request, options] {
    request.action = [options] { return options->watch ? watch(*options) : show_once(*options); };
  });
}

}  // namespace verbena::cli
