#include "rdma/doctor_netlink.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rdma/verbs_error.h"

namespace verbena::rdma::kernel {
namespace {

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

Result<Bytes> receive(int fd) {
  Bytes buffer(std::size_t{1} << 16);
  ssize_t got = -1;
  do {
    got = ::recv(fd, buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return verbs_failure("recv", "of netlink", errno);
  buffer.resize(static_cast<std::size_t>(got));
  return buffer;
}

// True where `message` ends the answer; an error of the kernel is one.
Result<bool> ends(const NetlinkMessage& message) {
  if (message.type == NLMSG_DONE) return true;
  if (message.type != NLMSG_ERROR) return false;
  const auto code = number_from<std::int32_t>(message.body);
  if (code == 0) return true;
  return verbs_failure("netlink", "request", code < 0 ? -code : code);
}

}  // namespace

NetlinkRequest& NetlinkRequest::attribute(std::uint16_t type, std::span<const std::uint8_t> value) {
  nlattr attribute{};
  attribute.nla_len = static_cast<std::uint16_t>(sizeof attribute + value.size());
  attribute.nla_type = type;
  const std::size_t at = body_.size();
  body_.resize(at + NLA_ALIGN(attribute.nla_len));
  std::memcpy(body_.data() + at, &attribute, sizeof attribute);
  if (!value.empty()) std::memcpy(body_.data() + at + sizeof attribute, value.data(), value.size());
  return *this;
}

NetlinkRequest& NetlinkRequest::text(std::uint16_t type, std::string_view value) {
  Bytes bytes(value.begin(), value.end());
  bytes.push_back(0);
  return attribute(type, bytes);
}

Bytes NetlinkRequest::bytes() const {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + body_.size());
  header.nlmsg_type = type_;
  header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | (dump_ ? NLM_F_DUMP : 0));
  header.nlmsg_seq = 1;
  Bytes all(NLMSG_HDRLEN + body_.size());
  std::memcpy(all.data(), &header, sizeof header);
  std::copy(body_.begin(), body_.end(), all.begin() + NLMSG_HDRLEN);
  return all;
}

std::vector<NetlinkMessage> split_messages(std::span<const std::uint8_t> received) {
  std::vector<NetlinkMessage> messages;
  while (received.size() >= sizeof(nlmsghdr)) {
    const auto header = number_from<nlmsghdr>(received);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > received.size()) break;
    const auto body = received.subspan(sizeof header, header.nlmsg_len - sizeof header);
    messages.push_back({header.nlmsg_type, Bytes(body.begin(), body.end())});
    received = received.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), received.size()));
  }
  return messages;
}

Result<std::vector<NetlinkMessage>> ask_kernel(int protocol, const NetlinkRequest& request) {
  const Socket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (socket.fd() < 0) return verbs_failure("socket", "of netlink", errno);
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const Bytes bytes = request.bytes();
  if (::send(socket.fd(), bytes.data(), bytes.size(), 0) < 0) return verbs_failure("send", "of netlink", errno);
  std::vector<NetlinkMessage> answers;
  for (;;) {
    const auto received = receive(socket.fd());
    if (!received) return tl::make_unexpected(received.error());
    for (NetlinkMessage& message : split_messages(*received)) {
      const auto end = ends(message);
      if (!end) return tl::make_unexpected(end.error());
      if (*end) return answers;
      answers.push_back(std::move(message));
      if (!request.dump()) return answers;
    }
    if (received->empty()) return answers;
  }
}

std::string text_from(std::span<const std::uint8_t> value) {
  return std::string(value.begin(), std::find(value.begin(), value.end(), std::uint8_t{0}));
}

}  // namespace verbena::rdma::kernel
