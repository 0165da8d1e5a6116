#include "rdma/doctor_path_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include "rdma/doctor_finding.h"
#include "verbena/rate.h"

namespace verbena::rdma {
namespace {

const PortFacts* local_port(const HostFacts& host, const PathFacts& path) {
  const DeviceFacts* device = find_device(host, path.device);
  return device == nullptr ? nullptr : find_port(*device, path.port);
}

bool is_infiniband(const HostFacts& host, const PathFacts& path) {
  const PortFacts* port = local_port(host, path);
  return port != nullptr && port->view.link_layer == LinkLayer::kInfiniBand;
}

// The GIDs by which this host could speak, of all devices or of the one that was taken.
std::vector<GidEntry> local_gids(const HostFacts& host, const PathFacts& path) {
  std::vector<GidEntry> gids;
  for (const DeviceFacts& device : host.devices) {
    if (path.device.empty() || device.name == path.device)
      gids.insert(gids.end(), device.gids.begin(), device.gids.end());
  }
  return gids;
}

std::string kinds_of(const std::vector<GidEntry>& gids) {
  std::string text;
  for (const GidEntry& entry : gids) {
    const std::string word =
        fmt::format("{} {}", entry.type == GidType::kRoceV1 ? "RoCE v1" : "RoCE v2", family_word(entry.gid));
    if (text.find(word) == std::string::npos) text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "none" : text;
}

// The type that the far end gave for `gid`; nothing where it did not.
std::optional<GidType> far_type(const FarPort& far, const Gid& gid) {
  std::optional<GidType> found;
  for (std::size_t i = 0; i < far.gids.size() && i < far.types.size(); ++i) {
    if (far.gids[i] != gid) continue;
    if (far.types[i] == GidType::kRoceV2) return far.types[i];
    found = far.types[i];
  }
  return found;
}

bool far_has(const FarPort& far, const Gid& gid) {
  return std::find(far.gids.begin(), far.gids.end(), gid) != far.gids.end();
}

std::string gids_in_words(const std::vector<Gid>& gids) {
  std::string text;
  for (const Gid& gid : gids) text += (text.empty() ? "" : ", ") + address_text(gid);
  return text.empty() ? "none" : text;
}

bool is_routed(const PathFacts& path) {
  return path.route && !path.route->local && !path.route->gateway.is_zero();
}

std::string mac_in_words(const MacAddress& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

std::string next_hop_in_words(const PathFacts& path) {
  return is_routed(path) ? fmt::format("the router {}", address_text(path.route->gateway))
                         : address_text(path.destination);
}

// What was asked for does not count there.
Finding check_kernel_hop_limit(const PathFacts& path, const char* way) {
  const std::string seen = fmt::format("hop limit {} by the kernel, {}", *path.kernel_hop_limit, way);
  if (*path.kernel_hop_limit == 1 && is_routed(path)) {
    return finding(Severity::kFailure, "hop_limit", path.peer, seen,
                   {"a router takes one off and drops what has none left; for its own device the kernel takes the hop "
                    "limit of its route or interface, whatever the program asks for",
                    "ip route change ... hoplimit 64, or net.ipv4.ip_default_ttl and net.ipv6.conf.NAME.hop_limit"});
  }
  if (*path.kernel_hop_limit == path.hop_limit) return good("hop_limit", path.peer, seen);
  return finding(Severity::kNote, "hop_limit", path.peer, seen,
                 {fmt::format("{} was asked for; for its own device the kernel takes the hop limit of its route or "
                              "interface instead",
                              path.hop_limit),
                  "nothing, where that is enough; else ip route change ... hoplimit N"});
}

}  // namespace

Finding check_peer_address(const PathFacts& path) {
  const Gid& gid = path.destination;
  if (gid.is_zero() && path.dlid == 0) {
    return finding(Severity::kFailure, "peer_address", path.peer, "the destination GID is zero",
                   {"the peer had no address when it told its GID, or it told LID 0 as on InfiniBand while the port is "
                    "Ethernet",
                    "give the peer's port an address, and send its GID (on RoCE: its IP address)"});
  }
  if (gid.is_loopback()) {
    return finding(Severity::kNote, "peer_address", path.peer, fmt::format("{} is this host itself", address_text(gid)),
                   {"nothing leaves this host: what is between two hosts is not looked at"});
  }
  if (gid.is_link_local() && !path.source) {
    return finding(Severity::kNote, "peer_address", path.peer, fmt::format("{} is link-local", address_text(gid)),
                   {"it means another host on each link", "name the interface: fe80::1%eth0, or use another address"});
  }
  return good("peer_address", path.peer,
              gid.is_zero() ? fmt::format("LID {}", path.dlid)
                            : fmt::format("{}{}", address_text(gid), gid.is_multicast() ? ", a multicast group" : ""));
}

Finding check_source(const PathFacts& path) {
  if (path.source) return good("source_for_peer", path.device, path.source->explanation);
  if (path.source_error) {
    return finding(Severity::kFailure, "source_for_peer", path.device, path.source_error->message,
                   {"an address handle to this peer is refused (ibv_create_ah: EINVAL) or never answered",
                    "use an address of the peer of a kind that this host has too, on the interface of an RDMA device; "
                    "verbena gids lists what there is"});
  }
  return good("source_for_peer", path.device, "not needed: by LID");
}

std::vector<Finding> check_gid_match(const HostFacts& host, const PathFacts& path) {
  const std::vector<GidEntry> mine = local_gids(host, path);
  if (is_infiniband(host, path) || path.destination.is_zero()) return {};
  const bool same_family = std::any_of(mine.begin(), mine.end(), [&](const GidEntry& entry) {
    return std::string_view(family_word(entry.gid)) == family_word(path.destination);
  });
  if (!same_family && !path.destination.is_multicast()) {
    return {
        finding(Severity::kFailure, "gid_match", path.peer,
                fmt::format("the peer is {}, this host's GIDs are: {}", family_word(path.destination), kinds_of(mine)),
                {"source and destination GID must be of one family, and link-local goes with link-local only",
                 fmt::format("give this host an {} address on the RDMA interface, or name the peer by another of its "
                             "addresses",
                             family_word(path.destination))})};
  }
  if (!path.far) return {};
  const FarPort& far = *path.far;
  if (!far_has(far, path.destination)) {
    return {
        finding(Severity::kWarning, "gid_match", path.peer,
                fmt::format("{} is no GID of the peer's port {}; it has: {}", address_text(path.destination),
                            far.device, gids_in_words(far.gids)),
                {"the address belongs to another interface of the peer, without an RDMA device or with another one; "
                 "datagrams to it are not answered by this port",
                 "use one of those addresses"})};
  }
  if (!path.source) return {};
  const std::optional<GidType> theirs = far_type(far, path.destination);
  if (theirs && *theirs != path.source->entry.type) {
    return {
        finding(Severity::kFailure, "gid_match", path.peer,
                fmt::format("here {}, there {}", to_string(path.source->entry.type), to_string(*theirs)),
                {"RoCE v1 frames and RoCE v2 datagrams do not meet: the sender sees IBV_WC_RETRY_EXC_ERR, or nothing",
                 "choose GIDs of RoCE v2 at both ends"})};
  }
  return {good("gid_match", path.peer,
               fmt::format("{} at both ends{}", family_word(path.destination),
                           theirs ? fmt::format(", {}", to_string(*theirs)) : ""))};
}

std::vector<Finding> check_route(const HostFacts& host, const PathFacts& path) {
  if (is_infiniband(host, path) || path.destination.is_zero() || path.destination.is_multicast()) return {};
  if (path.route_error) {
    return {finding(Severity::kFailure, "route", path.peer, path.route_error->message,
                    {"the kernel cannot say how to get there",
                     "ip route add NETWORK via ROUTER, or an address in the peer's network"})};
  }
  if (!path.route) return {};
  if (path.route->local) return {good("route", path.peer, "an address of this host")};
  const std::string way = fmt::format(
      "by {}{}", interface_in_words(host, path.route->netdev),
      is_routed(path) ? fmt::format(", by the router {}", address_text(path.route->gateway)) : ", on the link");
  const InterfaceFacts* interface = find_interface(host, path.route->netdev);
  if (interface != nullptr && (!interface->up || !interface->carrier)) {
    return {finding(Severity::kFailure, "route", path.peer, way,
                    {fmt::format("{} is {}", interface->name, interface->up ? "without a link" : "down"),
                     fmt::format("ip link set {} up; check the cable", interface->name)})};
  }
  if (path.source && path.source->entry.netdev != 0 && path.source->entry.netdev != path.route->netdev) {
    return {finding(
        Severity::kWarning, "route", path.peer,
        fmt::format("{}, while the source GID is on {}", way, interface_in_words(host, path.source->entry.netdev)),
        {"the kernel's own route leaves by another interface than the device's; a card ignores it or refuses",
         "name the interface of the destination, or add a route by the device's interface"})};
  }
  return {good("route", path.peer, way)};
}

std::vector<Finding> check_neighbour(const HostFacts& host, const PathFacts& path) {
  using State = NeighbourFacts::State;
  if (is_infiniband(host, path) || !path.route || path.route->local || !path.neighbour) return {};
  const NeighbourFacts& neighbour = *path.neighbour;
  const std::string hop = next_hop_in_words(path);
  std::string elsewhere;
  for (const NeighbourFacts& other : path.neighbours_elsewhere) {
    if (other.mac)
      elsewhere +=
          fmt::format("; {} is also known on {}", address_text(other.address), interface_in_words(host, other.netdev));
  }
  const Advice dead{
      "the next hop does not answer: it is off, has another address, or the two are not on one link; "
      "ibv_create_ah blocks for up to three seconds, then fails with ETIMEDOUT, EHOSTUNREACH or EINVAL",
      fmt::format("ping it; check address, VLAN and cable of both ends; ip neigh show {}",
                  address_text(neighbour.address))};
  switch (neighbour.state) {
    case State::kFailed:
      return {
          finding(Severity::kFailure, "neighbour", path.peer, fmt::format("{} has failed{}", hop, elsewhere), dead)};
    case State::kIncomplete:
      return {finding(Severity::kFailure, "neighbour", path.peer,
                      fmt::format("{} is asked for and has not answered{}", hop, elsewhere), dead)};
    case State::kNone:
      return {finding(Severity::kNote, "neighbour", path.peer, fmt::format("{} has no entry yet{}", hop, elsewhere),
                      {"nobody has sent there lately; the first address handle will wait until it is resolved",
                       "make address handles before the traffic starts"})};
    case State::kNoArp:
    case State::kPermanent:
    case State::kReachable:
    case State::kStale:
    case State::kDelay:
    case State::kProbe:
      break;
  }
  const std::string seen =
      fmt::format("{} is at {}", hop, neighbour.mac ? mac_in_words(*neighbour.mac) : "no MAC address (none is needed)");
  if (elsewhere.empty()) return {good("neighbour", path.peer, seen)};
  return {
      finding(Severity::kWarning, "neighbour", path.peer, seen + elsewhere,
              {"two interfaces lead to one address: replies may come by the other one, and a failover leaves a card "
               "with the old MAC address",
               "give each interface a network of its own, or route by source address"})};
}

std::vector<Finding> check_hop_limit(const PathFacts& path) {
  if (path.destination.is_zero()) return {};
  const char* way = is_routed(path) ? "the way crosses a router" : "no router on the way";
  if (!path.route) way = "the way is not known";
  const std::string seen = fmt::format("hop limit {}, {}", path.hop_limit, way);
  if (path.hop_limit == 0) {
    return {finding(Severity::kFailure, "hop_limit", path.peer, seen,
                    {"a packet with hop limit 0 is dropped by the first that looks", "use 64"})};
  }
  if (path.kernel_hop_limit) return {check_kernel_hop_limit(path, way)};
  if (path.hop_limit == 1 && is_routed(path)) {
    return {finding(Severity::kFailure, "hop_limit", path.peer, seen,
                    {"a router takes one off and drops what has none left: nothing arrives, and nothing is reported",
                     "use 64 (grh.hop_limit; several example programs have 1)"})};
  }
  return {good("hop_limit", path.peer, seen)};
}

std::vector<Finding> check_path_mtu(const HostFacts& host, const PathFacts& path) {
  const PortFacts* port = local_port(host, path);
  if (port == nullptr) return {};
  const std::uint32_t route_mtu = path.route ? path.route->mtu : 0;
  const std::uint32_t far_mtu = path.far ? path.far->mtu : 0;
  const std::uint32_t fits =
      effective_mtu(port->view.active_mtu, far_mtu, route_mtu, path.destination.is_ipv4_mapped());
  const std::string seen = fmt::format(
      "this port {}, the peer's {}{}", port->view.active_mtu, far_mtu == 0 ? "not known" : std::to_string(far_mtu),
      route_mtu == 0 ? "" : fmt::format(", the route lets {} bytes of IP through", route_mtu));
  if (port->view.active_mtu > fits) {
    return {finding(
        Severity::kWarning, "path_mtu", path.peer, seen,
        {fmt::format("datagrams above {} bytes are dropped on the way or by the peer; the handshake does not "
                     "show it",
                     fits),
         fmt::format("set path_mtu to {} at both ends, UD messages at most that long; or give all interfaces on "
                     "the way one MTU",
                     fits)})};
  }
  if (far_mtu > port->view.active_mtu) {
    return {finding(
        Severity::kWarning, "path_mtu", path.peer, seen,
        {fmt::format("the peer may send more than the {} bytes that arrive here", port->view.active_mtu),
         fmt::format("set path_mtu to {} at both ends, UD messages at most that long; or give all interfaces on "
                     "the way one MTU",
                     port->view.active_mtu)})};
  }
  return {good("path_mtu", path.peer, seen)};
}

std::vector<Finding> check_qkey(const PathFacts& path) {
  constexpr std::uint32_t kControlled = 0x80000000;
  if (!path.qkey) return {};
  const std::string seen = fmt::format("{:#010x}", *path.qkey);
  const bool controlled = (*path.qkey & kControlled) != 0;
  if (!controlled && path.far && *path.qkey != path.far->qkey) {
    return {finding(Severity::kFailure, "qkey", path.peer,
                    fmt::format("{}, and the server's queue pair has {:#010x}", seen, path.far->qkey),
                    {"a datagram with another Q_Key than the receiver's is dropped there (qkey_mismatch)",
                     "send with the Q_Key that the peer has set; it is told with GID and QPN"})};
  }
  if (!controlled) return {good("qkey", path.peer, seen)};
  return {
      finding(Severity::kWarning, "qkey", path.peer, seen + ": its highest bit is set",
              {"a work request with such a Q_Key is sent with the queue pair's own instead, and to set one on a queue "
               "pair wants CAP_NET_RAW: the receiver drops what does not fit, without a word",
               "use a Q_Key below 0x80000000"})};
}

std::vector<Finding> check_static_rate(const HostFacts& host, const PathFacts& path) {
  const PortFacts* port = local_port(host, path);
  if (path.static_rate == 0 || port == nullptr) return {};
  const bool named = path.static_rate <= static_cast<unsigned>(IBV_RATE_1200_GBPS);  // else not to be cast to one
  const auto bits = named ? bits_per_second(static_cast<ibv_rate>(path.static_rate)) : std::nullopt;
  if (!bits) {
    return {finding(Severity::kFailure, "static_rate", path.peer, fmt::format("{} is no ibv_rate", path.static_rate),
                    {"the device refuses the address handle (EINVAL)",
                     "use 0 (as fast as the port), or a value of enum ibv_rate"})};
  }
  const std::uint64_t rate = *bits / 1'000'000;
  const std::uint64_t far = path.far ? path.far->rate_mbps : 0;
  const std::uint64_t slowest = far == 0 ? port->rate_mbps : std::min(port->rate_mbps, far);
  const std::string seen = fmt::format(
      "{:g} Gbit/s; this port {:g}{}", static_cast<double>(rate) / 1000, static_cast<double>(port->rate_mbps) / 1000,
      far == 0 ? "" : fmt::format(", the peer's {:g}", static_cast<double>(far) / 1000));
  const Severity severity =
      advise_rate(static_cast<ibv_rate>(path.static_rate), {.bits_per_second = slowest * 1'000'000}).severity;
  if (severity == Severity::kWarning) {
    return {finding(Severity::kWarning, "static_rate", path.peer, seen,
                    {"faster than the slower end: what it cannot take is lost", "use 0, or the slower end's speed"})};
  }
  if (severity == Severity::kNote) {
    return {finding(Severity::kNote, "static_rate", path.peer, seen,
                    {"far below what both ends can do", "use 0, or the slower end's speed"})};
  }
  return {good("static_rate", path.peer, seen)};
}

// DSCP is the upper six bits, ECN the lower two.
std::vector<Finding> check_traffic_class(const PathFacts& path) {
  const unsigned ecn = path.traffic_class & 3U;
  const unsigned dscp = path.traffic_class >> 2U;
  if (path.traffic_class == 0) return {};
  const std::string seen = fmt::format("traffic class {}: DSCP {}, ECN {}", path.traffic_class, dscp, ecn);
  const std::string shifted = fmt::format("traffic class is DSCP * 4: for DSCP {} it is {}", path.traffic_class,
                                          unsigned{path.traffic_class} << 2U);
  if (ecn == 3) {
    return {
        finding(Severity::kWarning, "traffic_class", path.peer, seen,
                {"each datagram says that it met congestion (ECN 3): receivers answer with congestion notifications "
                 "that mean nothing",
                 path.traffic_class < 64 ? shifted : "clear the two lowest bits, or leave 2 there (ECN-capable)"})};
  }
  if (ecn != 0 && dscp != 0 && path.traffic_class < 64) {
    return {finding(Severity::kNote, "traffic_class", path.peer, seen,
                    {"a DSCP that was not shifted looks like this", shifted})};
  }
  return {good("traffic_class", path.peer, seen)};
}

std::vector<Finding> check_ah_limit(const HostFacts& host, const PathFacts& path) {
  const DeviceFacts* device = find_device(host, path.device);
  if (device == nullptr || !path.peers || device->max_ah == 0) return {};
  const std::string seen = fmt::format("{} peers, the device holds {} address handles", *path.peers, device->max_ah);
  if (*path.peers <= device->max_ah) return {good("max_ah", device->name, seen)};
  return {finding(Severity::kWarning, "max_ah", device->name, seen,
                  {"a program that keeps one handle for each peer fails with ENOMEM",
                   "keep them in an address-handle directory, which gives back idle ones"})};
}

std::vector<Finding> check_path(const HostFacts& host, const PathFacts& path) {
  std::vector<Finding> findings{check_peer_address(path)};
  const auto add = [&](std::vector<Finding> more) {
    for (Finding& each : more) findings.push_back(std::move(each));
  };
  if (findings.front().severity == Severity::kFailure) return findings;
  if (auto unlike = check_link_layers(path)) return {std::move(*unlike)};
  findings.push_back(check_source(path));
  add(check_gid_match(host, path));
  add(check_lid(host, path));
  add(check_route(host, path));
  add(check_neighbour(host, path));
  add(check_hop_limit(path));
  add(check_path_mtu(host, path));
  add(check_qkey(path));
  add(check_traffic_class(path));
  add(check_static_rate(host, path));
  add(check_ah_limit(host, path));
  return findings;
}

}  // namespace verbena::rdma
