#include "cli/control_channel.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/link_local_scope.h"
#include "cli/session_hello.h"
#include "cli/stop_signal.h"
#include "rdma/verbs_error.h"

namespace verbena::cli {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error system_error(ErrorCode code, std::string_view what, int number) {
  std::string text = fmt::format("{}: {}", what, std::strerror(number));
  if (number == EMFILE) text += "; " + rdma::files_in_words();
  return {code, number, std::move(text)};
}

// True where `events` came, false at the deadline. A stop signal ends it with kUnavailable.
Result<bool> wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    if (stop_requested()) return failure(ErrorCode::kUnavailable, "stopped");
    pollfd waiting{fd, events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000)));
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR) return tl::make_unexpected(system_error(ErrorCode::kUnavailable, "poll", errno));
  }
}

Result<Addresses> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error == EAI_NONAME || error == EAI_ADDRFAMILY) {  // an address whose family no interface but lo has
    hints.ai_flags = AI_NUMERICHOST;
    error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  }
  if (error != 0) {
    return failure(ErrorCode::kNotFound, fmt::format("cannot resolve {}: {}", host, ::gai_strerror(error)));
  }
  return Addresses(found, &::freeaddrinfo);
}

void send_at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Result<Descriptor> connect_to(const addrinfo& address, Deadline deadline) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return tl::make_unexpected(system_error(ErrorCode::kUnavailable, "socket", errno));
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return tl::make_unexpected(system_error(ErrorCode::kUnreachable, "connect", errno));
    const auto connected = wait_for(socket.get(), POLLOUT, deadline);
    if (!connected) return tl::make_unexpected(connected.error());
    if (!*connected) return failure(ErrorCode::kTimedOut, "no answer");
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return tl::make_unexpected(system_error(ErrorCode::kUnreachable, "connect", error));
  }
  send_at_once(socket.get());
  return socket;
}

// The address of a socket as a GID, and its port. Nothing for another family.
std::optional<std::pair<Gid, std::uint16_t>> endpoint_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return std::pair{Gid::from_ipv4(ntohl(in.sin_addr.s_addr)), ntohs(in.sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address, sizeof in6);
    Gid gid;
    std::memcpy(gid.bytes.data(), &in6.sin6_addr, gid.bytes.size());
    return std::pair{gid, ntohs(in6.sin6_port)};
  }
  return std::nullopt;
}

// The sockets interface takes every kind of address through the one type.
sockaddr* generic(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

Result<Descriptor> try_listen(int family, std::uint16_t port) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return tl::make_unexpected(system_error(ErrorCode::kUnavailable, "socket", errno));
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);
  socklen_t length = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    length = sizeof(sockaddr_in6);
  }
  // sin_port and sin6_port stand at the same place: behind the family.
  const std::uint16_t wire_port = htons(port);
  std::memcpy(generic(address)->sa_data, &wire_port, sizeof wire_port);
  if (::bind(socket.get(), generic(address), length) != 0 || ::listen(socket.get(), 64) != 0) {
    const ErrorCode code = errno == EADDRINUSE ? ErrorCode::kBusy : ErrorCode::kUnavailable;
    return tl::make_unexpected(system_error(code, fmt::format("cannot listen on TCP port {}", port), errno));
  }
  return socket;
}

}  // namespace

Result<ControlChannel> ControlChannel::connect(const std::string& host, std::uint16_t port, Deadline deadline) {
  if (Status status = check_scope(host, link_names()); !status) return tl::make_unexpected(status.error());
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::make_unexpected(addresses.error());
  Error last{ErrorCode::kNotFound, 0, "no address"};
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    auto socket = connect_to(*address, deadline);
    if (socket) return ControlChannel(std::move(*socket));
    last = socket.error();
  }
  last.message = fmt::format("cannot reach {} on TCP port {} ({}): is `verbena ping --listen` running there?", host,
                             port, last.message);
  return tl::make_unexpected(std::move(last));
}

Status ControlChannel::send_line(std::string_view line, Deadline deadline) {
  const std::string text = std::string(line) + '\n';
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t more = ::send(fd(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more >= 0) {
      sent += static_cast<std::size_t>(more);
    } else if (errno != EAGAIN && errno != EINTR) {
      return tl::make_unexpected(system_error(ErrorCode::kUnavailable, "the other end is gone", errno));
    } else {
      const auto writable = wait_for(fd(), POLLOUT, deadline);
      if (!writable) return tl::make_unexpected(writable.error());
      if (!*writable) return failure(ErrorCode::kTimedOut, "the other end does not listen");
    }
  }
  return {};
}

Result<std::string> ControlChannel::receive_line(Deadline deadline) {
  std::string line;
  for (;;) {
    const auto taken = take_line(line);
    if (!taken) return tl::make_unexpected(taken.error());
    if (*taken) return line;
    const auto readable = wait_for(fd(), POLLIN, deadline);
    if (!readable) return tl::make_unexpected(readable.error());
    if (!*readable) return failure(ErrorCode::kTimedOut, "the other end says nothing");
  }
}

Result<bool> ControlChannel::take_line(std::string& line) {
  while (!cut_line(line)) {
    if (received_.size() > kMaxHelloBytes) {
      return failure(ErrorCode::kInvalidArgument, "the other end sends a line without end");
    }
    auto more = read_more();
    if (!more || !*more) return more;
  }
  return true;
}

bool ControlChannel::cut_line(std::string& line) {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return false;
  line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return true;
}

Result<bool> ControlChannel::read_more() {
  std::array<char, 4096> chunk{};
  const ssize_t count = ::recv(fd(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (count > 0) {
    received_.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  return failure(ErrorCode::kUnavailable, "the other end ended the connection");
}

std::string ControlChannel::peer() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd(), generic(address), &length) != 0) return {};
  const auto endpoint = endpoint_of(address);
  if (!endpoint) return {};
  const std::string text = to_string(endpoint->first);
  const std::string_view mapped = "::ffff:";
  if (endpoint->first.is_ipv4_mapped()) return fmt::format("{}:{}", text.substr(mapped.size()), endpoint->second);
  return fmt::format("[{}]:{}", text, endpoint->second);
}

LocalAddress ControlChannel::local_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd(), generic(address), &length) != 0) return {};
  const auto endpoint = endpoint_of(address);
  if (!endpoint) return {};
  LocalAddress local{.gid = endpoint->first};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &address, sizeof in6);
    local.netdev = in6.sin6_scope_id;
  }
  return local;
}

Result<Descriptor> listen_on(std::uint16_t port) {
  auto both = try_listen(AF_INET6, port);
  if (both || both.error().code == ErrorCode::kBusy) return both;
  return try_listen(AF_INET, port);  // a host without IPv6
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener.get(), generic(address), &length) != 0) return 0;
  const auto endpoint = endpoint_of(address);
  return endpoint ? endpoint->second : std::uint16_t{0};
}

Descriptor accept_from(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) send_at_once(socket.get());
  return socket;
}

}  // namespace verbena::cli
