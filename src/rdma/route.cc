#include "verbena/route.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/verbs_error.h"

namespace verbena {

namespace {

constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// RTM_GETROUTE for one address. Attributes are appended in their place behind the fixed header.
class RouteRequest {
 public:
  RouteRequest(const Gid& destination, std::uint32_t netdev) {
    const bool ipv4 = destination.is_ipv4_mapped();
    header_.nlmsg_type = RTM_GETROUTE;
    header_.nlmsg_flags = NLM_F_REQUEST;
    route_.rtm_family = ipv4 ? AF_INET : AF_INET6;
    route_.rtm_dst_len = ipv4 ? 32 : 128;
    const std::span<const std::uint8_t> address(destination.bytes);
    append(RTA_DST, ipv4 ? address.last(kIpv4Bytes) : address);
    if (netdev != 0) {
      std::array<std::uint8_t, sizeof netdev> index{};
      std::memcpy(index.data(), &netdev, sizeof netdev);
      append(RTA_OIF, index);
    }
  }

  std::vector<std::uint8_t> bytes() {
    std::vector<std::uint8_t> all(NLMSG_LENGTH(sizeof route_));
    header_.nlmsg_len = static_cast<std::uint32_t>(all.size() + attributes_.size());
    std::memcpy(all.data(), &header_, sizeof header_);
    std::memcpy(all.data() + NLMSG_HDRLEN, &route_, sizeof route_);
    all.insert(all.end(), attributes_.begin(), attributes_.end());
    return all;
  }

 private:
  void append(unsigned short type, std::span<const std::uint8_t> value) {
    rtattr attribute{};
    attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size()));
    attribute.rta_type = type;
    const std::size_t at = attributes_.size();
    attributes_.resize(at + RTA_SPACE(value.size()));
    std::memcpy(attributes_.data() + at, &attribute, sizeof attribute);
    std::memcpy(attributes_.data() + at + RTA_LENGTH(0), value.data(), value.size());
  }

  nlmsghdr header_{};
  rtmsg route_{};
  std::vector<std::uint8_t> attributes_;
};

Gid gid_from(std::span<const std::uint8_t> address) {
  Gid gid;
  if (address.size() == kIpv4Bytes) {
    gid.bytes[10] = gid.bytes[11] = 0xff;
    std::memcpy(gid.bytes.data() + 12, address.data(), kIpv4Bytes);
  } else if (address.size() == kIpv6Bytes) {
    std::memcpy(gid.bytes.data(), address.data(), kIpv6Bytes);
  }
  return gid;
}

std::uint32_t number_from(std::span<const std::uint8_t> value) {
  std::uint32_t number = 0;
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

// Calls `take(type, value)` for each attribute in `bytes`; stops at the first that does not fit.
template <class Take>
void for_each_attribute(std::span<const std::uint8_t> bytes, Take take) {
  while (bytes.size() >= sizeof(rtattr)) {
    rtattr attribute;
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
    take(attribute.rta_type & NLA_TYPE_MASK, bytes.subspan(sizeof attribute, attribute.rta_len - sizeof attribute));
    bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), bytes.size()));
  }
}

void take_attribute(int type, std::span<const std::uint8_t> value, Route& route) {
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
      for_each_attribute(value, [&](int metric, std::span<const std::uint8_t> number) {
        if (metric == RTAX_MTU) route.mtu = number_from(number);
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

Result<Route> parse_reply(std::span<const std::uint8_t> reply, const Gid& destination, std::uint32_t netdev) {
  nlmsghdr header{};
  if (reply.size() < sizeof header) return failure(ErrorCode::kInternal, "rtnetlink answered with too few bytes");
  std::memcpy(&header, reply.data(), sizeof header);
  const std::span<const std::uint8_t> body = reply.subspan(NLMSG_HDRLEN);
  if (header.nlmsg_type == NLMSG_ERROR) {
    const auto code = static_cast<std::int32_t>(number_from(body));
    return no_route(destination, netdev, code < 0 ? -code : EIO);
  }
  rtmsg message{};
  if (header.nlmsg_type != RTM_NEWROUTE || body.size() < sizeof message) {
    return failure(ErrorCode::kInternal, fmt::format("rtnetlink answered with type {}", header.nlmsg_type));
  }
  std::memcpy(&message, body.data(), sizeof message);
  if (message.rtm_type == RTN_UNREACHABLE || message.rtm_type == RTN_BLACKHOLE || message.rtm_type == RTN_PROHIBIT) {
    return no_route(destination, netdev, message.rtm_type == RTN_PROHIBIT ? EACCES : ENETUNREACH);
  }
  Route route;
  route.local = message.rtm_type == RTN_LOCAL;
  for_each_attribute(body.subspan(NLMSG_ALIGN(sizeof message)),
                     [&](int type, std::span<const std::uint8_t> value) { take_attribute(type, value, route); });
  return route;
}

}  // namespace

Result<Route> look_up_route(const Gid& destination, std::uint32_t netdev) {
  const Socket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (socket.fd() < 0) return rdma::verbs_failure("socket", "of rtnetlink", errno);
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::vector<std::uint8_t> request = RouteRequest(destination, netdev).bytes();
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  sockaddr address{};
  static_assert(sizeof kernel <= sizeof address);
  std::memcpy(&address, &kernel, sizeof kernel);
  if (::sendto(socket.fd(), request.data(), request.size(), 0, &address, sizeof kernel) < 0) {
    return rdma::verbs_failure("sendto", "of a route request", errno);
  }
  std::array<std::uint8_t, 8192> reply{};
  ssize_t got = -1;
  do {
    got = ::recv(socket.fd(), reply.data(), reply.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return rdma::verbs_failure("recv", "of a route answer", errno);
  return parse_reply(std::span(reply).first(static_cast<std::size_t>(got)), destination, netdev);
}

}  // namespace verbena
