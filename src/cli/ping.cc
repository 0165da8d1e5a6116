// `verbena ping`: UD round trips between two hosts or processes, through the address-handle directory.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/control_channel.h"
#include "cli/counter_source.h"
#include "cli/device_settings.h"
#include "cli/drop_report.h"
#include "cli/exit_code.h"
#include "cli/interface.h"
#include "cli/json_text.h"
#include "cli/number_check.h"
#include "cli/path_ends.h"
#include "cli/ping_client.h"
#include "cli/ping_datagram.h"
#include "cli/ping_listen.h"
#include "cli/ping_report.h"
#include "cli/ping_session.h"
#include "cli/port_option.h"
#include "cli/port_to_server.h"
#include "cli/progress_bar.h"
#include "cli/stop_signal.h"
#include "cli/subcommands.h"
#include "cli/ud_endpoint.h"
#include "verbena/preflight.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "ping";
constexpr std::size_t kMaxWindow = kMaxPingWindow;
constexpr std::uint64_t kMaxCount = 1'000'000'000'000'000;
constexpr auto kConnectPatience = 5s;
constexpr auto kAddressPatience = 5s;

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena ping --listen                    on one host; it serves any number of clients, Ctrl-C ends it\n"
    "  verbena ping node7                       on the other: 1000 round trips, one at a time\n"
    "  verbena ping node7 -c 0 -i 1000          one a second, until Ctrl-C\n"
    "  verbena ping node7 -c 1000000 -w 64      the rate with 64 under way\n"
    "  verbena ping node7 -s 4096 --json\n"
    "  verbena ping 127.0.0.1 --impair loss=5%,seed=7\n"
    "\n"
    "The two ends tell each other GID, QPN and Q_Key over TCP; all else goes by datagrams. Port and source address\n"
    "are chosen by route. A datagram that is not answered in time is lost; verbena drops says where.\n"
    "With an interval the ends sleep in between, and to wake up is part of the round trip.\n"
    "Exit status: 0 where at least one came back, 1 where none did or the server ended the session, 2 where the "
    "command\n"
    "line is wrong.";

struct PingOptions {
  bool listen = false;
  bool once = false;
  bool json = false;
  std::string host;
  PortName device;
  std::uint16_t port = kPingPort;
  std::uint64_t count = 1000;
  std::size_t size = 64;
  std::size_t window = 1;
  double interval_ms = 0;
  double timeout_ms = 200;
  DeviceSettings settings;
};

Duration from_ms(double ms) {
  return Duration(static_cast<std::int64_t>(std::llround(ms * 1e6)));
}

UdEndpointOptions endpoint_options(const PingOptions& options, PortName port) {
  const auto depth = static_cast<std::uint32_t>(std::max<std::size_t>(options.window * 2, 64));
  return {.port = std::move(port), .send_depth = depth, .receive_depth = depth};
}

Status check_size(const PingOptions& options, const UdEndpoint& endpoint, const SessionHello& server) {
  const std::uint32_t limit = effective_mtu(endpoint.port().active_mtu, server.mtu, 0, false);
  if (options.size <= limit) return {};
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes do not fit into one datagram: this port carries {}, the server's {}",
                             options.size, endpoint.port().active_mtu, server.mtu));
}

void describe_path(PingReport& report, UdEndpoint& endpoint, const AhHandle& handle) {
  report.device = endpoint.device();
  report.port = endpoint.port().port;
  report.has_more_ports = endpoint.has_more_ports();
  const auto effective = endpoint.directory().effective(handle);
  if (!effective) return;
  report.netdev = interface_name(effective->source.netdev);
  PathEnds ends = path_ends(*effective, endpoint.port());
  report.source = std::move(ends.source);
  report.destination = std::move(ends.destination);
  report.explanation = effective->explanation;
}

void describe_outcome(PingReport& report, const PingOutcome& outcome, UdEndpoint& endpoint) {
  report.counts = outcome.round_trips.counts();
  report.lost = outcome.round_trips.lost();
  report.latency = outcome.round_trips.latency();
  report.elapsed = outcome.elapsed;
  report.unsent_why = outcome.unsent_why;
  report.ended_by = outcome.ended_by;
  report.cut_short = outcome.cut_short;
  report.directory = endpoint.directory().stats();
  // A process of this device answers within milliseconds; with other devices there is none to ask.
  if (const auto survey = survey_counters(200ms)) {
    report.drops = counted_drops(only_process(*survey, static_cast<std::uint32_t>(::getpid())));
  }
}

// From the address of the server to the report.
Result<PingReport> ping_server(const PingOptions& options, UdEndpoint& endpoint, ControlChannel& channel,
                               const SessionHello& server) {
  if (Status status = check_size(options, endpoint, server); !status) return tl::make_unexpected(status.error());
  const auto destinations = destinations_of(server, endpoint.port().link_layer, 0);
  const auto handle = acquire_first(endpoint.directory(), destinations, Deadline::in(kAddressPatience));
  if (!handle) return tl::make_unexpected(handle.error());
  const Status known = introduce(channel, endpoint, server.client, Deadline::in(kConnectPatience));
  if (!known) return tl::make_unexpected(known.error());
  PingReport report{.server = options.host, .size = options.size, .window = options.window};
  describe_path(report, endpoint, *handle);
  if (!options.json) {
    fmt::print("{}", render_ping_heading(report));
    std::fflush(stdout);
  }
  const PingPlan plan{.count = options.count,
                      .size = options.size,
                      .window = options.window,
                      .interval = from_ms(options.interval_ms),
                      .timeout = from_ms(options.timeout_ms),
                      .client = server.client};
  const UdPeer peer{nullptr, server.qpns.front(), server.qkey};
  const PostPing post = [&](std::uint64_t, std::string& unsent) {
    return send_through_directory(endpoint, *handle, peer, options.size, unsent);
  };
  ProgressBar progress(fmt::format("ping {}", options.host), options.count, now(), !options.json);
  const auto outcome = run_ping(endpoint, channel, plan, post, progress);
  if (!outcome) return tl::make_unexpected(outcome.error());
  describe_outcome(report, *outcome, endpoint);
  return report;
}

Result<PingReport> ping_host(const PingOptions& options) {
  const Deadline deadline = Deadline::in(kConnectPatience);
  auto channel = ControlChannel::connect(options.host, options.port, deadline);
  if (!channel) return tl::make_unexpected(channel.error());
  const auto server = receive_hello(*channel, deadline);
  if (!server) return tl::make_unexpected(server.error());
  const auto port = choose_port_to(*server, options.device, channel->local_address().netdev);
  if (!port) return tl::make_unexpected(port.error());
  auto endpoint = UdEndpoint::open(endpoint_options(options, *port));
  if (!endpoint) return tl::make_unexpected(endpoint.error());
  return ping_server(options, **endpoint, *channel, *server);
}

int ping(const PingOptions& options) {
  const auto report = ping_host(options);
  if (!report) return fail(kName, report.error());
  if (options.json) {
    fmt::print("{}\n", json_text(ping_to_json(*report)));
  } else {
    fmt::print("{}", render_ping_summary(*report));
  }
  const bool answered = report->counts.received + report->counts.late > 0;
  return answered && !report->cut_short ? kExitOk : kExitFailed;
}

int act(const PingOptions& options) {
  if (options.listen && !options.host.empty()) return fail_usage(kName, "give either --listen or a host, not both");
  if (!options.listen && options.host.empty()) return fail_usage(kName, "give a host to ping, or --listen to be one");
  if (options.port == 0 && !options.listen)
    return fail_usage(kName, "--port 0 is for --listen; give the server's port");
  if (options.once && !options.listen) return fail_usage(kName, "--once needs --listen");
  catch_stop_signals();
  if (const int code = apply_checked(kName, options.settings); code != kExitOk) return code;
  if (!options.listen) return ping(options);
  return serve_pings(kName,
                     {.port_name = options.device, .port = options.port, .once = options.once, .json = options.json});
}

void add_options(CLI::App& subcommand, PingOptions& options) {
  subcommand.add_option("HOST", options.host,
                        "Name or address of the host where verbena ping --listen runs, link-local with %IFACE");
  subcommand.add_flag("--listen", options.listen, "Be the server: answer pings");
  subcommand.add_flag("--once", options.once, "With --listen: end when the last client has left");
  add_port_option(subcommand, options.device, "The device, or its port, to use; without it, by route");
  subcommand.add_option("--port", options.port, "TCP port of the server; with --listen 0 takes any free one")
      ->check(CLI::Range(0, kMostTcpPort))
      ->type_name("PORT")
      ->capture_default_str();
  subcommand.add_option("-c,--count", options.count, "Datagrams to send; 0: until Ctrl-C")
      ->check(CLI::Range(std::uint64_t{0}, kMaxCount))  // which "-5" is far above, read as unsigned
      ->type_name("COUNT")
      ->capture_default_str();
  subcommand.add_option("-s,--size", options.size, "Bytes of payload in each")
      ->check(CLI::Range(kPingHeaderBytes, std::size_t{4096}))
      ->type_name("BYTES")
      ->capture_default_str();
  subcommand.add_option("-i,--interval", options.interval_ms, "Milliseconds between two sends, at least")
      ->check(number_between(0, 3.6e6))
      ->type_name("MS")
      ->capture_default_str();
  subcommand.add_option("-w,--window", options.window, "Datagrams under way at once")
      ->check(CLI::Range(std::size_t{1}, kMaxWindow))
      ->type_name("COUNT")
      ->capture_default_str();
  subcommand.add_option("-t,--timeout", options.timeout_ms, "Milliseconds after which one counts as lost")
      ->check(number_between(0.1, 3.6e6))
      ->type_name("MS")
      ->capture_default_str();
  subcommand.add_flag("--json", options.json, "Print JSON, latencies in nanoseconds");
}

}  // namespace

void add_ping(CLI::App& tool, Request& request) {
  auto options = std::make_shared<PingOptions>();
  auto* subcommand = tool.add_subcommand(kName, "Measure UD round trips through the address-handle directory");
  add_options(*subcommand, *options);
  add_device_settings(*subcommand, options->settings);
  subcommand->footer(kFooter);
  subcommand->callback([&request, options] { request.action = [options] { return act(*options); }; });
}

}  // namespace verbena::cli
