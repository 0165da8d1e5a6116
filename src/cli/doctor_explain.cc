#include "cli/doctor_explain.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/exit_code.h"
#include "cli/explanation_text.h"
#include "cli/json_text.h"
#include "rdma/doctor_gather.h"
#include "verbena/device.h"

namespace verbena::cli {
namespace {

constexpr const char* kName = "doctor explain";
constexpr std::size_t kWidth = 120;

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena doctor explain ibv_create_ah EINVAL\n"
    "  verbena doctor explain ibv_create_ah EINVAL gid_index=3 dgid=fe80::1 port=1 is_global=1\n"
    "  verbena doctor explain ibv_modify_qp 22 type=RC from=INIT to=RTR mask='STATE|AV|PATH_MTU|DEST_QPN|RQ_PSN'\n"
    "  verbena doctor explain ibv_reg_mr               which errors it has\n"
    "  verbena doctor explain EAGAIN                   which calls answer so\n"
    "  verbena doctor explain wc 12 vendor 0x81        a completion status, by number or name\n"
    "  verbena doctor explain event GID_CHANGE         an asynchronous event\n"
    "\n"
    "Attributes are written NAME=VALUE and judged one by one: is that place of the GID table filled, do both GIDs "
    "have\n"
    "one family, is a GRH needed? They are compared with the device named by device=NAME, else with the first one "
    "that\n"
    "opens. Give the attributes that the failing call had.\n"
    "Exit status: 0 explained, 2 a word is not known (the known ones are listed).";

std::size_t columns() {
  winsize window{};
  const bool known =
      ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 60;
  return known ? window.ws_col : kWidth;
}

// The device that attributes are compared with: the one named, else the first that opens.
std::optional<rdma::DeviceFacts> device_of(const ErrorQuestion& question) {
  if (question.attributes.empty()) return std::nullopt;
  const auto named = question.attributes.find("device");
  if (named != question.attributes.end()) {
    const auto context = Context::open(named->second);
    if (!context) return std::nullopt;
    return rdma::gather_device(context->get());
  }
  const auto list = DeviceList::read();
  if (!list) return std::nullopt;
  for (const std::string& name : list->names()) {
    if (const auto context = Context::open(name)) return rdma::gather_device(context->get());
  }
  return std::nullopt;
}

int explain(const std::vector<std::string>& words, bool json) {
  const auto question = parse_question(words);
  if (!question) return fail_usage(kName, question.error().message);
  const auto device = device_of(*question);
  if (!device && question->attributes.count("device") > 0) {
    return fail_usage(kName, fmt::format("device={} cannot be opened (verbena devices lists them)",
                                         question->attributes.at("device")));
  }
  const rdma::DeviceFacts* facts = device ? &*device : nullptr;
  if (json) {
    fmt::print("{}\n", json_text(explanation_to_json(*question, facts)));
  } else {
    fmt::print("{}", render_explanation(*question, facts, columns()));
  }
  return kExitOk;
}

}  // namespace

void add_doctor_explain(CLI::App& doctor, Request& request) {
  struct Options {
    std::vector<std::string> words;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* subcommand =
      doctor.add_subcommand("explain", "Explain an error of the verbs: a call and its errno, wc STATUS, event NAME");
  subcommand->add_option("WORDS", options->words, "What was seen, as in the examples")->required();
  subcommand->add_flag("--json", options->json, "Print JSON");
  subcommand->footer(kFooter);
  subcommand->callback([&request, &doctor, options] {
    options->json = options->json || doctor.count("--json") > 0;  // on either side of the word
    request.action = [options] { return explain(options->words, options->json); };
  });
}

}  // namespace verbena::cli
