#include "verbena/route.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
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

tl::unexpected<Error> no_route(const Gid& destination, std::uint32_t netdev, int code) {
  return tl::make_unexpected(Error{
      ErrorCode::kUnreachable, code,
      fmt::format("the kernel has no route to {}{}: {}; add one (ip route), or give the interface an address in its "
                  "network",
                  to_string(destination), netdev != 0 ? fmt::format(" by interface {}", netdev) : "",
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

}  // namespace

Result<Route> look_up_route(const Gid& destination, std::uint32_t netdev) {
  rtmsg question{};
  const Octets address = rdma::address_in(destination);
  question.rtm_family = destination.is_ipv4_mapped() ? AF_INET : AF_INET6;
  question.rtm_dst_len = static_cast<std::uint8_t>(8 * address.size());
  NetlinkRequest request(RTM_GETROUTE);
  request.fixed(question).attribute(RTA_DST, address);
  if (netdev != 0) request.number(RTA_OIF, netdev);
  const Result<NetlinkAnswer> answer = rdma::ask_kernel(NETLINK_ROUTE, request, "a route");
  if (!answer) return tl::make_unexpected(answer.error());
  return read_answer(*answer, destination, netdev);
}

}  // namespace verbena
