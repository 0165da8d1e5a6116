#include "verbena/route.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>

#include "rdma/netlink.h"

namespace verbena {

namespace {

using rdma::gid_from;
using rdma::NetlinkAnswer;
using rdma::NetlinkRequest;
using rdma::number_from;
using rdma::Octets;

void take_attribute(int type, Octets value, Route& route) {
  switch (type) {
    case RTA_OIF:
      route.netdev = number_from(value);
      break;
    case RTA_PREFSRC:
      route.source = gid_from(value);
      break;
    case RTA_GATEWAY:
      route.gateway = gid_from(value);
      break;
    case RTA_VIA:  // a gateway of the other family: family in two bytes, then the address
      if (value.size() > 2) route.gateway = gid_from(value.subspan(2));
      break;
    case RTA_METRICS:
      rdma::for_each_attribute(value, [&](int metric, Octets number) {
        if (metric == RTAX_MTU) route.mtu = number_from(number);
        if (metric == RTAX_HOPLIMIT) route.hop_limit = static_cast<std::uint8_t>(number_from(number));
      });
      break;
    default:
      break;
  }
}

std::string interface_in_words(std::uint32_t netdev) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(netdev, name.data()) == nullptr ? fmt::format("interface {}", netdev) : name.data();
}

tl::unexpected<Error> no_route(const Gid& destination, std::uint32_t netdev, int code) {
  return tl::make_unexpected(Error{
      ErrorCode::kUnreachable, code,
      fmt::format("the kernel has no route to {}{}: {}; add one (ip route), or give the interface an address in its "
                  "network",
                  to_string(destination), netdev != 0 ? " by " + interface_in_words(netdev) : "",
                  strerrordesc_np(code) != nullptr ? strerrordesc_np(code) : "unknown error")});
}

Result<Route> read_answer(const NetlinkAnswer& answer, const Gid& destination, std::uint32_t netdev) {
  if (answer.refused != 0) return no_route(destination, netdev, answer.refused);
  if (answer.messages.empty() || answer.messages.front().type != RTM_NEWROUTE ||
      answer.messages.front().body.size() < sizeof(rtmsg)) {
    return failure(ErrorCode::kInternal,
                   fmt::format("rtnetlink answered no route to a question for one to {}", to_string(destination)));
  }
  const auto [message, attributes] = rdma::split_body<rtmsg>(answer.messages.front().body);
  if (message.rtm_type == RTN_UNREACHABLE || message.rtm_type == RTN_BLACKHOLE || message.rtm_type == RTN_PROHIBIT) {
    return no_route(destination, netdev, message.rtm_type == RTN_PROHIBIT ? EACCES : ENETUNREACH);
  }
  Route route;
  route.local = message.rtm_type == RTN_LOCAL;
  rdma::for_each_attribute(attributes, [&](int type, Octets value) { take_attribute(type, value, route); });
  return route;
}

Result<NetlinkAnswer> ask(const Gid& destination, std::uint32_t netdev, std::uint32_t flags) {
  rtmsg question{};
  const Octets address = rdma::address_in(destination);
  question.rtm_family = destination.is_ipv4_mapped() ? AF_INET : AF_INET6;
  question.rtm_dst_len = static_cast<std::uint8_t>(8 * address.size());
  question.rtm_flags = flags;
  NetlinkRequest request(RTM_GETROUTE);
  request.fixed(question).attribute(RTA_DST, address);
  if (netdev != 0) request.number(RTA_OIF, netdev);
  return rdma::ask_kernel(NETLINK_ROUTE, request, "a route");
}

}  // namespace

// Of IPv4, where no table has a route by the interface that is asked for, the kernel answers as if the destination were
// on that link. Asked for the entry of the table itself (RTM_F_FIB_MATCH) it does not.
Result<Route> look_up_route(const Gid& destination, std::uint32_t netdev) {
  if (netdev != 0 && destination.is_ipv4_mapped()) {
    const Result<NetlinkAnswer> entry = ask(destination, netdev, RTM_F_FIB_MATCH);
    if (!entry) return tl::make_unexpected(entry.error());
    if (entry->refused != 0) return no_route(destination, netdev, entry->refused);
  }
  const Result<NetlinkAnswer> answer = ask(destination, netdev, 0);
  if (!answer) return tl::make_unexpected(answer.error());
  return read_answer(*answer, destination, netdev);
}

}  // namespace verbena
