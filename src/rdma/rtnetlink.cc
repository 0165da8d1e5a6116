#include "rdma/rtnetlink.h"

#include <array>
#include <cerrno>
#include <string>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/verbs_error.h"

namespace verbena::rdma {

namespace {

constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;
constexpr std::size_t kMostAnswer = 16384;

// The kernel as the other end, or any address of this one's own.
sockaddr of_netlink() {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  sockaddr address{};
  static_assert(sizeof kernel <= sizeof address);
  std::memcpy(&address, &kernel, sizeof kernel);
  return address;
}

Status send(int fd, Octets request, const char* what) {
  const sockaddr address = of_netlink();
  if (::sendto(fd, request.data(), request.size(), 0, &address, sizeof(sockaddr_nl)) >= 0) return {};
  return verbs_failure("sendto", fmt::format("of a question for {}", what), errno);
}

// The next datagram that is the kernel's own: any process may send to a netlink socket.
Result<std::size_t> receive_from_kernel(int fd, std::span<std::uint8_t> into, const char* what) {
  for (;;) {
    sockaddr_nl from{};
    sockaddr address{};
    socklen_t length = sizeof from;
    const ssize_t got = ::recvfrom(fd, into.data(), into.size(), 0, &address, &length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return verbs_failure("recv", fmt::format("of the answer about {}", what), errno);
    std::memcpy(&from, &address, sizeof from);
    if (from.nl_pid == 0) return static_cast<std::size_t>(got);
  }
}

}  // namespace

Gid gid_from(Octets address) {
  Gid gid;
  if (address.size() == kIpv4Bytes) {
    gid.bytes[10] = gid.bytes[11] = 0xff;
    std::memcpy(gid.bytes.data() + 12, address.data(), kIpv4Bytes);
  } else if (address.size() == kIpv6Bytes) {
    std::memcpy(gid.bytes.data(), address.data(), kIpv6Bytes);
  }
  return gid;
}

Octets address_in(const Gid& gid) {
  const Octets all(gid.bytes);
  return gid.is_ipv4_mapped() ? all.last(kIpv4Bytes) : all;
}

std::uint32_t number_from(Octets value) {
  std::uint32_t number = 0;
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

void NetlinkRequest::append(std::uint16_t type, Octets value) {
  rtattr attribute{};
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size()));
  attribute.rta_type = type;
  const std::size_t at = NLMSG_ALIGN(bytes_.size());
  bytes_.resize(at + RTA_SPACE(value.size()));
  std::memcpy(bytes_.data() + at, &attribute, sizeof attribute);
  std::memcpy(bytes_.data() + at + RTA_LENGTH(0), value.data(), value.size());
}

void NetlinkRequest::append(std::uint16_t type, std::uint32_t number) {
  std::array<std::uint8_t, sizeof number> value{};
  std::memcpy(value.data(), &number, sizeof number);
  append(type, value);
}

Octets NetlinkRequest::bytes() {
  const auto length = static_cast<std::uint32_t>(bytes_.size());
  std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  return bytes_;
}

Result<NetlinkSocket> NetlinkSocket::open(int flags) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);
  if (fd < 0) return verbs_failure("socket", "of rtnetlink", errno);
  NetlinkSocket socket(fd);
  const sockaddr address = of_netlink();
  // A socket without an address of its own is left out where the kernel tells all.
  if (::bind(fd, &address, sizeof(sockaddr_nl)) != 0) return verbs_failure("bind", "of rtnetlink", errno);
  return socket;
}

NetlinkSocket::~NetlinkSocket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<NetlinkAnswer> ask_kernel(NetlinkRequest request, const char* what) {
  const Result<NetlinkSocket> socket = NetlinkSocket::open(0);
  if (!socket) return tl::make_unexpected(socket.error());
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket->fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (Status sent = send(socket->fd(), request.bytes(), what); !sent) return tl::make_unexpected(sent.error());
  std::vector<std::uint8_t> bytes(kMostAnswer);
  const Result<std::size_t> got = receive_from_kernel(socket->fd(), bytes, what);
  if (!got) return tl::make_unexpected(got.error());
  if (*got < sizeof(nlmsghdr)) {
    return failure(ErrorCode::kInternal, fmt::format("rtnetlink answered about {} with {} bytes", what, *got));
  }
  const auto [header, rest] = split_body<nlmsghdr>(Octets(bytes).first(*got));
  NetlinkAnswer answer{.type = header.nlmsg_type, .error = 0, .body = {rest.begin(), rest.end()}};
  if (answer.type == NLMSG_ERROR) {
    const auto code = static_cast<std::int32_t>(number_from(rest));
    answer.error = code < 0 ? -code : EIO;
  }
  return answer;
}

}  // namespace verbena::rdma
