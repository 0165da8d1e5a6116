#include "cli/ping_session.h"

#include <optional>
#include <utility>

#include "cli/interface.h"
#include "rdma/doctor_gather.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"

namespace verbena::cli {
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
