#include "cli/ping_listen.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "cli/control_channel.h"
#include "cli/exit_code.h"
#include "cli/ping_server.h"
#include "cli/ud_endpoint.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kLongestPacket = 4096;  // the largest MTU of RDMA

void announce(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int serve_pings(std::string_view subcommand, const PingListenOptions& options) {
  auto endpoint = UdEndpoint::open({.device = options.device,
                                    .payload_bytes = kLongestPacket,  // the port's MTU may grow while it runs
                                    .send_depth = 512,
                                    .receive_depth = kMaxPingWindow});
  if (!endpoint) return fail(subcommand, endpoint.error());
  auto listener = listen_on(options.port);
  if (!listener) return fail(subcommand, listener.error());
  std::string addresses;
  for (const Gid& gid : (*endpoint)->gids({})) addresses += " " + to_string(gid);
  announce(fmt::format("listening on TCP port {}; {}, queue pair {:#x}, GIDs{}", port_of(*listener),
                       (*endpoint)->device(), (*endpoint)->qpns().front(), addresses));
  PingServer server(**endpoint, announce);
  server.listen(std::move(*listener));
  const Status status = server.run(options.once);
  return status ? kExitOk : fail(subcommand, status.error());
}

}  // namespace verbena::cli
