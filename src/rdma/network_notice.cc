#include "rdma/network_notice.h"

#include <algorithm>

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <sys/socket.h>

namespace verbena::rdma {

namespace {

using Kind = NetworkChange::Kind;

constexpr std::uint8_t kIpv4PrefixInGid = 96;  // the bits in front of an IPv4 address

bool is_ip(int family) {
  return family == AF_INET || family == AF_INET6;
}

std::optional<MacAddress> mac_from(Octets value) {
  MacAddress mac{};
  if (value.size() != mac.size()) return std::nullopt;
  std::copy(value.begin(), value.end(), mac.begin());
  return mac;
}

NetworkChange change_of(Kind kind, int netdev, bool removed) {
  NetworkChange change;
  change.kind = kind;
  change.netdev = static_cast<std::uint32_t>(netdev);
  change.removed = removed;
  return change;
}

std::optional<NetworkChange> read_link(Octets body, bool removed) {
  if (body.size() < sizeof(ifinfomsg)) return std::nullopt;
  const auto [link, attributes] = split_body<ifinfomsg>(body);
  if (link.ifi_family != AF_UNSPEC) return std::nullopt;  // AF_BRIDGE: a port of a bridge, not the interface
  NetworkChange change = change_of(Kind::kLink, link.ifi_index, removed);
  for_each_attribute(attributes, [&](int type, Octets value) {
    if (type == IFLA_ADDRESS) change.mac = mac_from(value);
  });
  return change;
}

std::optional<NetworkChange> read_address(Octets body, bool removed) {
  if (body.size() < sizeof(ifaddrmsg)) return std::nullopt;
  const auto [address, attributes] = split_body<ifaddrmsg>(body);
  if (!is_ip(address.ifa_family)) return std::nullopt;
  NetworkChange change = change_of(Kind::kAddress, static_cast<int>(address.ifa_index), removed);
  Octets own;  // on a point-to-point link IFA_ADDRESS is the other end, and IFA_LOCAL this one
  for_each_attribute(attributes, [&](int type, Octets value) {
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && own.empty())) own = value;
  });
  if (own.empty()) return std::nullopt;
  change.address = gid_from(own);
  if (change.address->is_multicast()) return std::nullopt;  // a group joined in the guise of an address
  return change;
}

std::optional<NetworkChange> read_neighbour(Octets body, bool removed) {
  if (body.size() < sizeof(ndmsg)) return std::nullopt;
  const auto [neighbour, attributes] = split_body<ndmsg>(body);
  if (!is_ip(neighbour.ndm_family)) return std::nullopt;
  NetworkChange change = change_of(Kind::kNeighbour, neighbour.ndm_ifindex, removed);
  Octets station;
  for_each_attribute(attributes, [&](int type, Octets value) {
    if (type == NDA_DST) change.address = gid_from(value);
    if (type == NDA_LLADDR) station = value;
  });
  if (!change.address || change.address->is_multicast()) return std::nullopt;
  if (!station.empty() && station.size() != MacAddress{}.size()) return std::nullopt;  // IP over InfiniBand, a tunnel
  const bool usable = !removed && (neighbour.ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) == 0;
  if (usable) change.mac = mac_from(station);
  return change;
}

bool is_of_many(const rtmsg& route) {
  return route.rtm_type == RTN_MULTICAST || route.rtm_type == RTN_BROADCAST || route.rtm_type == RTN_ANYCAST;
}

std::optional<NetworkChange> read_route(Octets body, bool removed) {
  if (body.size() < sizeof(rtmsg)) return std::nullopt;
  const auto [route, attributes] = split_body<rtmsg>(body);
  if (!is_ip(route.rtm_family) || is_of_many(route) || (route.rtm_flags & RTM_F_CLONED) != 0) return std::nullopt;
  NetworkChange change = change_of(Kind::kRoute, 0, removed);
  const bool ipv4 = route.rtm_family == AF_INET;
  change.address = ipv4 ? Gid::from_ipv4(0) : Gid{};
  const int bits = route.rtm_dst_len + (ipv4 ? kIpv4PrefixInGid : 0);
  change.prefix_length = static_cast<std::uint8_t>(std::min(bits, 128));
  for_each_attribute(attributes, [&](int type, Octets value) {
    if (type == RTA_DST) change.address = gid_from(value);
  });
  if (change.address->is_multicast()) return std::nullopt;
  return change;
}

// A rule or a next-hop object: which destinations it moves, only a look-up tells. Its family is the first byte.
std::optional<NetworkChange> read_any_route(Octets body, bool removed) {
  const int family = body.empty() ? -1 : body.front();
  if (!is_ip(family) && family != AF_UNSPEC) return std::nullopt;
  return change_of(Kind::kRoute, 0, removed);
}

}  // namespace

std::optional<NetworkChange> read_notice(std::uint16_t type, Octets body) {
  static_assert(offsetof(fib_rule_hdr, family) == 0 && offsetof(nhmsg, nh_family) == 0);
  switch (type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return read_link(body, type == RTM_DELLINK);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return read_address(body, type == RTM_DELADDR);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return read_neighbour(body, type == RTM_DELNEIGH);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return read_route(body, type == RTM_DELROUTE);
    case RTM_NEWRULE:
    case RTM_DELRULE:
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP:
      return read_any_route(body, type == RTM_DELRULE || type == RTM_DELNEXTHOP);
    default:
      return std::nullopt;
  }
}

void read_notices(Octets datagram, const std::function<void(const NetworkChange&)>& take) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    const auto [header, rest] = split_body<nlmsghdr>(datagram);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) return;
    if (const auto change = read_notice(header.nlmsg_type, rest.first(header.nlmsg_len - sizeof header))) take(*change);
    datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
}

}  // namespace verbena::rdma
