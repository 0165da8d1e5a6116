// `verbena doctor`: what is wrong on this host, on the way to a peer, or with a verbs call?
#include <cstdlib>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/device_settings.h"
#include "cli/doctor_examination.h"
#include "cli/doctor_explain.h"
#include "cli/doctor_report.h"
#include "cli/exit_code.h"
#include "cli/json_text.h"
#include "cli/number_check.h"
#include "cli/ping_listen.h"
#include "cli/port_option.h"
#include "cli/stop_signal.h"
#include "cli/subcommands.h"

namespace verbena::cli {
namespace {

constexpr const char* kName = "doctor";

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena doctor                           this host: devices, ports, GIDs, limits, who holds the port\n"
    "  verbena doctor --serve                   on the peer, so that the next one can prove that data moves\n"
    "  verbena doctor node7                     this host, the way to node7, and datagrams there and back\n"
    "  verbena doctor node7 --hop-limit 1       as your program would send\n"
    "  verbena doctor --problems                only what is not good\n"
    "  verbena doctor node7 --json | jq '.findings[] | select(.result == \"failure\")'\n"
    "  verbena doctor explain ibv_create_ah EINVAL gid_index=3 dgid=fe80::1\n"
    "  verbena doctor explain wc 12\n"
    "\n"
    "Each check tells its result (good, note, warning, failure), what was seen, why it is so, and what to do. Without "
    "a\n"
    "server on the peer only checks of this host are made. Nothing is changed on either host. docs/doctor.md explains\n"
    "each check.\n"
    "Exit status: by the worst finding: 0 good or a note, 3 a warning, 1 a failure; 2 the command line is wrong.";

struct DoctorOptions {
  ExaminationOptions examination;
  std::string dgid;
  std::uint32_t qkey = 0;
  std::uint64_t peers = 0;
  bool serve = false;
  bool once = false;
  bool no_probe = false;
  bool json = false;
  bool problems = false;
  std::string path_option;  // one of add_path_options() that was given; empty: none
  bool explained = false;   // the subcommand was chosen, and acts
  DeviceSettings settings;
};

DoctorStyle style_of(const DoctorOptions& options) {
  DoctorStyle style{.problems_only = options.problems};
  if (::isatty(STDOUT_FILENO) != 1) return style;
  style.color = std::getenv("NO_COLOR") == nullptr;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) style.width = window.ws_col;
  return style;
}

int visit(const DoctorOptions& options) {
  const auto findings = examine(options.examination);
  if (!findings) return fail(kName, findings.error());
  if (options.json) {
    fmt::print("{}\n", json_text(findings_to_json(*findings, options.examination.peer)));
  } else {
    fmt::print("{}", render_findings(*findings, style_of(options)));
    if (options.examination.peer.empty()) {
      fmt::print(
          "This host only. For the way to another: verbena doctor --serve there, then verbena doctor PEER here.\n");
    }
  }
  return exit_code_of(*findings);
}

int act(const DoctorOptions& options) {
  const ExaminationOptions& examination = options.examination;
  if (options.serve && !examination.peer.empty()) return fail_usage(kName, "give either --serve or a peer, not both");
  if (options.once && !options.serve) return fail_usage(kName, "--once needs --serve");
  if (examination.tcp_port == 0 && !options.serve) {
    return fail_usage(kName, "--port 0 is for --serve; give the server's port");
  }
  const bool about_peer = !options.dgid.empty() || examination.names_dlid;
  if (about_peer && examination.peer.empty()) return fail_usage(kName, "--dgid and --dlid need a peer");
  if (examination.peer.empty() && !options.path_option.empty()) {
    return fail_usage(kName, fmt::format("{} needs a peer: it is about the way there", options.path_option));
  }
  catch_stop_signals();
  if (const int code = apply_checked(kName, options.settings); code != kExitOk) return code;
  if (options.serve) {
    return serve_pings(
        kName,
        {.port_name = examination.port, .port = examination.tcp_port, .once = options.once, .json = options.json});
  }
  return visit(options);
}

void add_path_options(CLI::App& subcommand, DoctorOptions& options) {
  constexpr const char* kGroup = "As your program sends";
  ExaminationOptions& examination = options.examination;
  subcommand.add_option("--hop-limit", examination.hop_limit, "Hop limit of the address")
      ->check(CLI::Range(0, 255))
      ->type_name("N")
      ->capture_default_str()
      ->group(kGroup);
  subcommand.add_option("--dgid", options.dgid, "Destination GID, where it is not the peer's own address")
      ->type_name("GID")
      ->group(kGroup);
  subcommand
      .add_option_function<std::uint16_t>(
          "--dlid",
          [&examination](std::uint16_t lid) {
            examination.dlid = lid;
            examination.names_dlid = true;
          },
          "Destination LID (InfiniBand)")
      ->type_name("LID")
      ->group(kGroup);
  subcommand.add_option("--qkey", options.qkey, "Q_Key; without it, the server's")->type_name("QKEY")->group(kGroup);
  subcommand.add_option("--traffic-class", examination.traffic_class, "Traffic class: DSCP * 4")
      ->check(CLI::Range(0, 255))
      ->type_name("N")
      ->group(kGroup);
  subcommand.add_option("--static-rate", examination.static_rate, "A value of enum ibv_rate; 0: as fast as the port")
      ->check(CLI::Range(0, 255))
      ->type_name("RATE")
      ->group(kGroup);
  subcommand.add_option("--peers", options.peers, "How many address handles the program will hold")
      ->check(positive_whole_number())
      ->type_name("COUNT")
      ->group(kGroup);
}

void add_options(CLI::App& subcommand, DoctorOptions& options) {
  subcommand.add_option("PEER", options.examination.peer,
                        "Name or address of another host, link-local with %IFACE; without it, this host only");
  subcommand.add_flag("--serve", options.serve, "Be the peer: tell about this port and answer datagrams, until Ctrl-C");
  subcommand.add_flag("--once", options.once, "With --serve: end when the last client has left");
  add_port_option(subcommand, options.examination.port,
                  "Only this device, or its port; without it, all, and by route to a peer");
  options.examination.tcp_port = kPingPort;
  subcommand
      .add_option("--port", options.examination.tcp_port, "TCP port of the server; with --serve 0 takes any free one")
      ->check(CLI::Range(0, kMostTcpPort))
      ->type_name("PORT")
      ->capture_default_str();
  subcommand.add_flag("--no-probe", options.no_probe, "Do not look for a server: send nothing");
  subcommand.add_flag("--problems", options.problems, "Show only what is not good");
  subcommand.add_flag("--json", options.json, "Print JSON");
}

// False where one of them cannot be read; `why` says it.
bool finish(DoctorOptions& options, const CLI::App& subcommand, std::string& why) {
  ExaminationOptions& examination = options.examination;
  examination.probe = !options.no_probe;
  if (subcommand.count("--qkey") > 0) examination.qkey = options.qkey;
  if (subcommand.count("--peers") > 0) examination.peers = options.peers;
  for (const char* option : {"--hop-limit", "--qkey", "--traffic-class", "--static-rate", "--peers"}) {
    if (subcommand.count(option) > 0) options.path_option = option;
  }
  if (options.dgid.empty()) return true;
  examination.dgid = parse_gid(options.dgid);
  if (!examination.dgid) why = fmt::format("{} is neither an IP address nor a GID", options.dgid);
  return examination.dgid.has_value();
}

}  // namespace

void add_doctor(CLI::App& tool, Request& request) {
  auto options = std::make_shared<DoctorOptions>();
  auto* subcommand =
      tool.add_subcommand(kName, "Find out what is wrong: here, on the way to a peer, or with a verbs call");
  add_options(*subcommand, *options);
  add_path_options(*subcommand, *options);
  add_device_settings(*subcommand, options->settings);
  subcommand->footer(kFooter);
  add_doctor_explain(*subcommand, request);
  subcommand->callback([&request, options, subcommand] {
    if (!subcommand->get_subcommands().empty()) return;  // which has set the action
    request.action = [options, subcommand] {
      std::string why;
      return finish(*options, *subcommand, why) ? act(*options) : fail_usage(kName, why);
    };
  });
}

}  // namespace verbena::cli
