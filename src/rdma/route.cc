#include "verbena/route.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>

#include "rdma/netlink.h"
#include "rdma/network_notice.h"

namespace verbena {

namespace {

using rdma::gid_from;
using rdma::NetlinkAnswer;
using rdma::NetlinkRequest;
using rdma::number_from;
using rdma::Octets;

struct Question {
  Gid destination;
  std::uint32_t netdev = 0;  // 0: by whichever
  Gid source{};              // zero: whichever the kernel takes
};

enum class Wanted { kOutcome, kEntry };  // kEntry: the entry of the routing table that leads there

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

// The type of a route that forbids what leads there, by the errno that the kernel gives it; nullptr for another.
const char* forbidding_type(int code) {
  switch (code) {
    case EINVAL:
      return "blackhole";
    case EACCES:
      return "prohibit";
    case EHOSTUNREACH:
      return "unreachable";
    default:
      return nullptr;
  }
}

tl::unexpected<Error> no_route(const Gid& destination, std::uint32_t netdev, int code) {
  std::string text = fmt::format("the kernel has no route to {}{}: ", to_string(destination),
                                 netdev != 0 ? " by " + interface_in_words(netdev) : "");
  if (const char* const type = forbidding_type(code)) {
    text += fmt::format("one of type {} forbids it; remove that, or add a more specific one (ip route)", type);
  } else {
    text += fmt::format("{}; add one (ip route), or give the interface an address in its network",
                        strerrordesc_np(code) != nullptr ? strerrordesc_np(code) : "unknown error");
  }
  return tl::make_unexpected(Error{ErrorCode::kUnreachable, code, std::move(text)});
}

Result<Route> read_answer(const NetlinkAnswer& answer, const Question& question) {
  const auto& [destination, netdev, source] = question;
  if (answer.refused != 0) return no_route(destination, netdev, answer.refused);
  if (answer.messages.empty() || answer.messages.front().type != RTM_NEWROUTE ||
      answer.messages.front().body.size() < sizeof(rtmsg)) {
    return failure(ErrorCode::kInternal,
                   fmt::format("rtnetlink answered no route to a question for one to {}", to_string(destination)));
  }
  const auto [message, attributes] = rdma::split_body<rtmsg>(answer.messages.front().body);
  if (message.rtm_type == RTN_UNREACHABLE || message.rtm_type == RTN_BLACKHOLE || message.rtm_type == RTN_PROHIBIT) {
    return no_route(destination, netdev,
                    message.rtm_type == RTN_PROHIBIT    ? EACCES
                    : message.rtm_type == RTN_BLACKHOLE ? EINVAL
                                                        : EHOSTUNREACH);
  }
  Route route;
  route.local = message.rtm_type == RTN_LOCAL;
  rdma::for_each_attribute(attributes, [&](int type, Octets value) { take_attribute(type, value, route); });
  return route;
}

Result<Route> ask(const Question& question, Wanted wanted = Wanted::kOutcome) {
  const Octets address = rdma::address_in(question.destination);
  const auto bits = static_cast<std::uint8_t>(8 * address.size());
  rtmsg message{};
  message.rtm_family = question.destination.is_ipv4_mapped() ? AF_INET : AF_INET6;
  message.rtm_dst_len = bits;
  if (!question.source.is_zero()) message.rtm_src_len = bits;
  if (wanted == Wanted::kEntry) message.rtm_flags = RTM_F_FIB_MATCH;
  NetlinkRequest request(RTM_GETROUTE);
  request.fixed(message).attribute(RTA_DST, address);
  if (!question.source.is_zero()) request.attribute(RTA_SRC, rdma::address_in(question.source));
  if (question.netdev != 0) request.number(RTA_OIF, question.netdev);
  const Result<NetlinkAnswer> answer = rdma::ask_kernel(NETLINK_ROUTE, request, "a route");
  if (!answer) return tl::make_unexpected(answer.error());
  return read_answer(*answer, question);
}

// Asked by an interface, the kernel answers what no route says. IPv4: where none matches, or one forbids, the
// destination is on the link. IPv6: a route that forbids is passed over, since it is by no interface; not so where the
// source is given, but then another interface may be the answer.
Result<Route> ask_by_interface(const Question& question) {
  Result<Route> route = ask(question);
  if (!route || route->local || question.destination.is_link_local()) return route;
  if (route->netdev != question.netdev) return no_route(question.destination, question.netdev, ENETUNREACH);
  if (question.destination.is_ipv4_mapped()) {
    if (!route->gateway.is_zero()) return route;
    const Result<Route> entry = ask(question, Wanted::kEntry);
    if (entry || entry.error().code != ErrorCode::kUnreachable) return entry ? route : entry;
    return no_route(question.destination, question.netdev, ENETUNREACH);  // EHOSTUNREACH, whatever the reason
  }
  if (!question.source.is_zero() || route->source.is_zero()) return route;
  const Result<Route> from_there = ask({question.destination, question.netdev, route->source});
  return from_there ? route : from_there;
}

// Those of `family` that a rule of the routing policy may name.
std::vector<Gid> sources_of(std::uint32_t netdev, std::uint8_t family) {
  ifaddrmsg message{};
  message.ifa_family = family;
  NetlinkRequest request(RTM_GETADDR, rdma::Answers::kAll);
  request.fixed(message);
  const Result<NetlinkAnswer> answer = rdma::ask_kernel(NETLINK_ROUTE, request, "the addresses");
  std::vector<Gid> sources;
  if (!answer) return sources;
  for (const rdma::NetlinkMessage& one : answer->messages) {
    const auto told = rdma::read_notice(one.type, one.body);
    if (!told || told->kind != NetworkChange::Kind::kAddress || told->netdev != netdev || !told->address) continue;
    if (told->address->is_ipv4_mapped() != (family == AF_INET) || told->address->is_link_local()) continue;
    sources.push_back(*told->address);
  }
  return sources;
}

// A route that forbids is of no interface: asked by one, the kernel says no more than that there is none.
Error with_reason(const Error& refusal, const Gid& destination, std::uint32_t netdev) {
  if (refusal.code != ErrorCode::kUnreachable || refusal.system_errno != ENETUNREACH) return refusal;
  const Result<Route> by_any = ask({.destination = destination});
  if (by_any || by_any.error().code != ErrorCode::kUnreachable) return refusal;
  const int code = by_any.error().system_errno;
  return forbidding_type(code) != nullptr ? no_route(destination, netdev, code).value() : refusal;
}

}  // namespace

Result<Route> look_up_route(const Gid& destination, std::uint32_t netdev) {
  if (netdev == 0) return ask({.destination = destination});
  Result<Route> route = ask_by_interface({destination, netdev});
  if (route || destination.is_link_local()) return route;
  for (const Gid& source : sources_of(netdev, destination.is_ipv4_mapped() ? AF_INET : AF_INET6)) {
    Result<Route> from_there = ask_by_interface({destination, netdev, source});
    if (!from_there) continue;
    from_there->source = source;
    return from_there;
  }
  return tl::make_unexpected(with_reason(route.error(), destination, netdev));
}

}  // namespace verbena
