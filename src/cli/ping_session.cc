#include "cli/ping_session.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/interface.h"
#include "rdma/doctor_gather.h"
#include "rdma/first_route.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"
#include "verbena/gid_table.h"
#include "verbena/route.h"

namespace verbena::cli {
namespace {

// A device of this host that may lead to the server.
struct Candidate {
  std::string name;
  std::uint8_t port = 0;
  bool infiniband = false;
  std::vector<GidEntry> table;
};

// `link_layer`: of the server; empty where it does not say.
Result<Candidate> look_at(const std::string& name, const std::string& link_layer) {
  const auto context = Context::open(name);
  if (!context) return tl::make_unexpected(context.error());
  const auto port = context->first_active_port();
  if (!port) return tl::make_unexpected(port.error());
  Candidate candidate{
      .name = name, .port = port->port, .infiniband = port->link_layer == LinkLayer::kInfiniBand, .table = {}};
  if (!link_layer.empty() && candidate.infiniband != (link_layer == "infiniband")) {
    return failure(ErrorCode::kUnreachable, fmt::format("{} is {}, and the server's device is not; name another with "
                                                        "--device, or use another at the server",
                                                        name, candidate.infiniband ? "InfiniBand" : "Ethernet (RoCE)"));
  }
  if (candidate.infiniband) return candidate;  // which addresses by LID: any will do
  auto table = read_gid_table(context->get());
  if (!table) return tl::make_unexpected(table.error());
  candidate.table = std::move(*table);
  return candidate;
}

}  // namespace

SessionHello hello_of(const UdEndpoint& endpoint, const Gid& first, std::uint32_t client) {
  SessionHello hello{.qpns = endpoint.qpns(),
                     .qkey = endpoint.qkey(),
                     .mtu = endpoint.mtu_now(),
                     .lid = endpoint.port().lid,
                     .client = client,
                     .device = endpoint.device()};
  for (const GidEntry& entry : endpoint.gid_entries(first)) {
    hello.gids.push_back(entry.gid);
    hello.types.emplace_back(to_string(entry.type));
    if (hello.netdev.empty()) hello.netdev = interface_name(entry.netdev);
  }
  hello.link_layer = endpoint.port().link_layer == LinkLayer::kEthernet ? "ethernet" : "infiniband";
  hello.netdev_mtu = interface_mtu(hello.netdev);
  hello.rate_mbps = rdma::port_rate_mbps(endpoint.domain()->context, endpoint.port().port);
  return hello;
}

Result<SessionHello> receive_hello(ControlChannel& channel, Deadline deadline) {
  const auto line = channel.receive_line(deadline);
  if (!line) return tl::make_unexpected(line.error());
  return decode_session_hello(*line);
}

Result<std::string> choose_device(const SessionHello& server) {
  const auto list = DeviceList::read();
  if (!list) return tl::make_unexpected(list.error());
  Error error{ErrorCode::kNotFound, 0, "there is no verbs device here"};
  std::vector<Candidate> candidates;
  for (const std::string& name : list->names()) {
    auto candidate = look_at(name, server.link_layer);
    if (candidate) {
      candidates.push_back(std::move(*candidate));
    } else {
      error = candidate.error();
    }
  }
  if (!candidates.empty()) error = Error{ErrorCode::kUnreachable, 0, "the server has no GID"};
  const Candidate* second_best = nullptr;
  for (const Gid& gid : server.gids) {
    const std::optional<Route> route = rdma::first_route(gid, 0, look_up_route);
    for (const Candidate& candidate : candidates) {
      if (candidate.infiniband) return candidate.name;
      const auto choice =
          choose_source(candidate.table, {.destination = gid, .port = candidate.port, .source = {}}, look_up_route);
      if (choice && route && rdma::is_on_route(*choice, route)) return candidate.name;
      if (choice && second_best == nullptr) second_best = &candidate;
      if (!choice && gid == server.gids.front()) error = choice.error();
    }
  }
  if (second_best != nullptr) return second_best->name;
  return tl::make_unexpected(std::move(error));
}

Status introduce(ControlChannel& channel, const UdEndpoint& endpoint, std::uint32_t client, Deadline deadline) {
  const SessionHello hello = hello_of(endpoint, {}, client);
  if (Status status = channel.send_line(encode(hello), deadline); !status) return status;
  const auto ready = receive_hello(channel, deadline);
  if (!ready) return tl::make_unexpected(ready.error());
  return {};
}

std::vector<Destination> destinations_of(const SessionHello& server, LinkLayer link_layer, std::uint32_t flow_label) {
  std::vector<Destination> destinations;
  if (link_layer == LinkLayer::kInfiniBand && server.lid != 0) {
    destinations.push_back(Destination{.gid = {}, .source = {}, .flow_label = flow_label, .lid = server.lid});
  }
  for (const Gid& gid : server.gids)
    destinations.push_back(Destination{.gid = gid, .source = {}, .flow_label = flow_label});
  return destinations;
}

Result<AhHandle> acquire_first(AhDirectory& directory, const std::vector<Destination>& destinations,
                               Deadline deadline) {
  std::optional<Error> first;
  for (const Destination& destination : destinations) {
    auto handle = directory.acquire(destination, deadline);
    if (handle) return handle;
    if (!first) first = handle.error();
  }
  if (!first) first = Error{ErrorCode::kNotFound, 0, "the server told no address"};
  return tl::make_unexpected(std::move(*first));
}

}  // namespace verbena::cli
