// The demo's other process: answers datagrams on as many queue pairs as the demo has destinations, for one client, at
// the end of a socket pair. Not for people: it is not shown in the help.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/child_process.h"
#include "cli/control_channel.h"
#include "cli/exit_code.h"
#include "cli/ping_server.h"
#include "cli/port_name.h"
#include "cli/port_option.h"
#include "cli/served_ports.h"
#include "cli/session_hello.h"
#include "cli/subcommands.h"

namespace verbena::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);

struct ResponderOptions {
  PortName port;
  std::size_t destinations = 1;
};

// What goes wrong is told to the client, who tells the user.
int give_up(ControlChannel& channel, const Error& error) {
  static_cast<void>(channel.send_line(encode(SessionHello{.error = error.message}), Deadline::in(kPatience)));
  return kExitFailed;
}

int respond(const ResponderOptions& options) {
  ControlChannel channel{Descriptor(kChildChannelFd)};
  auto ports = ServedPorts::open({.port = options.port, .queue_pairs = options.destinations});
  if (!ports) return give_up(channel, ports.error());
  PingServer server(std::move(*ports), [](const std::string&) {});
  server.add_client(std::move(channel));
  return server.run(true) ? kExitOk : kExitFailed;
}

}  // namespace

void add_demo_responder(CLI::App& tool, Request& request) {
  auto options = std::make_shared<ResponderOptions>();
  auto* subcommand = tool.add_subcommand("demo-responder", "The other process of the demo");
  subcommand->group("");  // hidden
  add_port_option(*subcommand, options->port, "The device or port to answer on");
  subcommand->add_option("--destinations", options->destinations)->check(CLI::Range(1, 256));
  subcommand->callback([&request, options] { request.action = [options] { return respond(*options); }; });
}

}  // namespace verbena::cli
