#include "transport/udp/udp_sender.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <sys/socket.h>

#include "transport/no_cancel.h"
#include "transport/udp/socket_address.h"

namespace verbena::transport {
namespace {

constexpr std::size_t kRun = 32;
constexpr std::size_t kParts = 256;

// What one sendmmsg needs; large, and only written where it is used.
struct Messages {
  std::array<mmsghdr, kRun> headers;
  std::array<SocketAddress, kRun> addresses;
  std::array<std::array<std::byte, 2 * CMSG_SPACE(sizeof(int))>, kRun> controls alignas(cmsghdr);
  std::array<iovec, kParts> parts;
  std::size_t count = 0;
  std::size_t part_count = 0;

  // False where there is no room for it beside the others.
  bool add(const Outgoing& datagram, const UdpOptions& to) noexcept;
};

void put_option(cmsghdr* at, int level, int type, int value) noexcept {
  at->cmsg_level = level;
  at->cmsg_type = type;
  at->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(at), &value, sizeof value);
}

void put_options(msghdr& message, const Envelope& envelope) noexcept {
  const bool is_v4 = envelope.destination.is_ipv4_mapped();
  cmsghdr* at = CMSG_FIRSTHDR(&message);
  put_option(at, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_TOS : IPV6_TCLASS, envelope.traffic_class);
  at = CMSG_NXTHDR(&message, at);
  put_option(at, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_TTL : IPV6_HOPLIMIT, envelope.hop_limit);
}

bool Messages::add(const Outgoing& datagram, const UdpOptions& to) noexcept {
  if (count == kRun || part_count + datagram.parts.size() > kParts) return false;
  const std::size_t first = part_count;
  for (const auto part : datagram.parts) {
    if (!part.empty()) parts[part_count++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  addresses[count] = SocketAddress(datagram.envelope->destination, to.port, to.interface_index);
  controls[count].fill(std::byte{0});
  headers[count] = {};
  msghdr& message = headers[count].msg_hdr;
  message.msg_name = addresses[count].get();
  message.msg_namelen = addresses[count].length();
  message.msg_iov = &parts[first];
  message.msg_iovlen = part_count - first;
  message.msg_control = controls[count].data();
  message.msg_controllen = controls[count].size();
  put_options(message, *datagram.envelope);
  ++count;
  return true;
}

Drop drop_of(int error) noexcept {
  switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EAFNOSUPPORT:
      return Drop::kNoRoute;
    case EMSGSIZE:
      return Drop::kDatagramTooLong;
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case ENODEV:
      return Drop::kPortDown;
    default:
      return Drop::kSocketError;
  }
}

}  // namespace

int UdpSender::socket_of(std::uint16_t source_port) const noexcept {
  const int socket = ports_.find(source_port);
  return socket >= 0 ? socket : main_socket_;
}

void UdpSender::explain_once(const Outgoing& datagram, Drop drop, int error) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(drop);
  static_assert(kDropCount <= 64);
  if ((explained_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  drops_.explain("The kernel refused " + std::to_string(datagram.size) + " bytes of UDP from " +
                 to_string(options_.address) + " to " + to_string(datagram.envelope->destination) + ": " +
                 std::generic_category().message(error) + ". Counted as " + std::string(row_of(drop).name) +
                 "; not reported again.");
}

void UdpSender::refuse(const Outgoing& datagram, int error) noexcept {
  const Drop drop = drop_of(error);
  drops_.count(drop);
  explain_once(datagram, drop, error);
}

// Sends the datagrams at the front that go out of one socket. Returns how many were sent or dropped.
std::size_t UdpSender::send_run(std::span<const Outgoing> batch, bool& full) noexcept {
  const bool is_v4 = options_.address.is_ipv4_mapped();
  const Outgoing& first = batch.front();
  if (first.envelope->destination.is_ipv4_mapped() != is_v4) {
    refuse(first, EAFNOSUPPORT);
    return 1;
  }
  const int socket = socket_of(first.envelope->source_port);
  Messages messages;
  for (const auto& datagram : batch) {
    if (datagram.envelope->destination.is_ipv4_mapped() != is_v4) break;
    if (datagram.envelope->source_port != first.envelope->source_port) break;
    if (!messages.add(datagram, options_)) break;
  }
  if (messages.count == 0) {
    refuse(first, EMSGSIZE);
    return 1;
  }
  const NoCancel guard;
  const int sent =
      ::sendmmsg(socket, messages.headers.data(), static_cast<unsigned>(messages.count), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) return static_cast<std::size_t>(sent);
  if (errno == EINTR) return 0;
  if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
    full = true;
    return 0;
  }
  refuse(first, errno);
  return 1;
}

SendResult UdpSender::send(std::span<const Outgoing> batch) noexcept {
  SendResult result;
  while (result.taken < batch.size() && !result.full) {
    result.taken += send_run(batch.subspan(result.taken), result.full);
  }
  return result;
}

}  // namespace verbena::transport
