#include "rdma/netlink.h"

#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rdma/verbs_error.h"

namespace verbena::rdma {
namespace {

constexpr std::size_t kIpv4Bytes = 4;
constexpr std::size_t kIpv6Bytes = 16;
constexpr std::size_t kMostReceived = std::size_t{1} << 16;

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
    if (got < 0 && errno == EAGAIN) {  // no limit is reached: it was waited for in vain
      return failure(ErrorCode::kUnavailable,
                     fmt::format("the kernel did not answer the question for {} in time", what), ETIMEDOUT);
    }
    if (got < 0) return verbs_failure("recv", fmt::format("of the answer about {}", what), errno);
    std::memcpy(&from, &address, sizeof from);
    if (from.nl_pid == 0) return static_cast<std::size_t>(got);
  }
}

// Adds what was received to `answer`; true where that is all.
bool take(std::vector<NetlinkMessage> received, Answers wanted, NetlinkAnswer& answer) {
  if (received.empty()) return true;
  for (NetlinkMessage& message : received) {
    if (message.type == NLMSG_DONE) return true;
    if (message.type == NLMSG_ERROR) {
      const auto code = number_from<std::int32_t>(message.body);
      if (code != 0) answer = {.refused = code < 0 ? -code : EIO};
      return true;
    }
    answer.messages.push_back(std::move(message));
    if (wanted == Answers::kOne) return true;
  }
  return false;
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

std::string text_from(Octets value) {
  return std::string(value.begin(), std::find(value.begin(), value.end(), std::uint8_t{0}));
}

NetlinkRequest& NetlinkRequest::attribute(std::uint16_t type, Octets value) {
  nlattr attribute{};
  attribute.nla_len = static_cast<std::uint16_t>(sizeof attribute + value.size());
  attribute.nla_type = type;
  const std::size_t at = body_.size();
  body_.resize(at + NLA_ALIGN(attribute.nla_len));
  std::memcpy(body_.data() + at, &attribute, sizeof attribute);
  if (!value.empty()) std::memcpy(body_.data() + at + sizeof attribute, value.data(), value.size());
  return *this;
}

NetlinkRequest& NetlinkRequest::number(std::uint16_t type, std::uint32_t value) {
  std::array<std::uint8_t, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return attribute(type, bytes);
}

NetlinkRequest& NetlinkRequest::text(std::uint16_t type, std::string_view value) {
  std::vector<std::uint8_t> bytes(value.begin(), value.end());
  bytes.push_back(0);
  return attribute(type, bytes);
}

std::vector<std::uint8_t> NetlinkRequest::bytes() const {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + body_.size());
  header.nlmsg_type = type_;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | (answers_ == Answers::kAll ? NLM_F_DUMP : 0));
  header.nlmsg_seq = 1;
  std::vector<std::uint8_t> all(NLMSG_HDRLEN + body_.size());
  std::memcpy(all.data(), &header, sizeof header);
  std::copy(body_.begin(), body_.end(), all.begin() + NLMSG_HDRLEN);
  return all;
}

Result<NetlinkSocket> NetlinkSocket::open(int protocol, int flags) {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, protocol);
  if (fd < 0) return verbs_failure("socket", "of netlink", errno);
  NetlinkSocket socket(fd);
  const sockaddr address = of_netlink();
  // A socket without an address of its own is left out where the kernel tells all.
  if (::bind(fd, &address, sizeof(sockaddr_nl)) != 0) return verbs_failure("bind", "of netlink", errno);
  return socket;
}

NetlinkSocket::~NetlinkSocket() {
  if (fd_ >= 0) ::close(fd_);
}

std::vector<NetlinkMessage> split_messages(Octets received) {
  std::vector<NetlinkMessage> messages;
  while (received.size() >= sizeof(nlmsghdr)) {
    const auto header = number_from<nlmsghdr>(received);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > received.size()) break;
    const auto body = received.subspan(sizeof header, header.nlmsg_len - sizeof header);
    messages.push_back({header.nlmsg_type, {body.begin(), body.end()}});
    received = received.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), received.size()));
  }
  return messages;
}

Result<NetlinkAnswer> ask_kernel(int protocol, const NetlinkRequest& request, const char* what,
                                 std::chrono::milliseconds patience) {
  const Result<NetlinkSocket> socket = NetlinkSocket::open(protocol);
  if (!socket) return tl::make_unexpected(socket.error());
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timeval limit{.tv_sec = whole.count(), .tv_usec = std::chrono::microseconds(patience - whole).count()};
  ::setsockopt(socket->fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (Status sent = send(socket->fd(), request.bytes(), what); !sent) return tl::make_unexpected(sent.error());
  std::vector<std::uint8_t> bytes(kMostReceived);
  NetlinkAnswer answer;
  for (;;) {
    const Result<std::size_t> got = receive_from_kernel(socket->fd(), bytes, what);
    if (!got) return tl::make_unexpected(got.error());
    if (take(split_messages(Octets(bytes).first(*got)), request.answers(), answer)) return answer;
  }
}

}  // namespace verbena::rdma
