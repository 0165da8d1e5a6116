#include "cli/ping_listen.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "cli/control_channel.h"
#include "cli/exit_code.h"
#include "cli/ping_server.h"
#include "cli/served_ports.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kLongestPacket = 4096;  // the largest MTU of RDMA

void announce_on(std::FILE* stream, const std::string& line) {
  fmt::print(stream, "{}\n", line);
  std::fflush(stream);
}

}  // namespace

int serve_pings(std::string_view subcommand, const PingListenOptions& options) {
  std::FILE* const stream = options.json ? stderr : stdout;  // where stdout holds JSON and nothing else
  const auto announce = [stream](const std::string& line) { announce_on(stream, line); };
  auto ports = ServedPorts::open({.port = options.port_name,
                                  .payload_bytes = kLongestPacket,  // the port's MTU may grow while it runs
                                  .send_depth = 512,
                                  .receive_depth = kMaxPingWindow});
  if (!ports) return fail(subcommand, ports.error());
  auto listener = listen_on(options.port);
  if (!listener) return fail(subcommand, listener.error());
  announce(fmt::format("listening on TCP port {}; {}", port_of(*listener), in_words(ports->first())));
  PingServer server(std::move(*ports), announce);
  server.listen(std::move(*listener));
  const Status status = server.run(options.once);
  return status ? kExitOk : fail(subcommand, status.error());
}

}  // namespace verbena::cli
