#include "transport/udp/udp_arrivals.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/no_cancel.h"
#include "transport/udp/socket_address.h"

namespace verbena::transport {
namespace {

constexpr std::size_t kControlBytes =
    2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(std::uint32_t));

template <class T>
T data_of(cmsghdr* part) noexcept {
  T value{};
  std::memcpy(&value, CMSG_DATA(part), std::min(sizeof value, part->cmsg_len - CMSG_LEN(0)));
  return value;
}

struct Details {
  Envelope envelope;
  std::uint32_t overflows = 0;
  bool has_overflows = false;
};

void read_ipv4_part(cmsghdr* part, Envelope& envelope) noexcept {
  if (part->cmsg_type == IP_TOS) envelope.traffic_class = data_of<std::uint8_t>(part);
  if (part->cmsg_type == IP_TTL) envelope.hop_limit = static_cast<std::uint8_t>(data_of<int>(part));
  if (part->cmsg_type == IP_PKTINFO) envelope.destination = gid_of(data_of<in_pktinfo>(part).ipi_addr);
}

void read_ipv6_part(cmsghdr* part, Envelope& envelope) noexcept {
  if (part->cmsg_type == IPV6_TCLASS) envelope.traffic_class = static_cast<std::uint8_t>(data_of<int>(part));
  if (part->cmsg_type == IPV6_HOPLIMIT) envelope.hop_limit = static_cast<std::uint8_t>(data_of<int>(part));
  if (part->cmsg_type == IPV6_PKTINFO) envelope.destination = gid_of(data_of<in6_pktinfo>(part).ipi6_addr);
}

Details read_control(msghdr& message) noexcept {
  Details details;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == IPPROTO_IP) read_ipv4_part(part, details.envelope);
    if (part->cmsg_level == IPPROTO_IPV6) read_ipv6_part(part, details.envelope);
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
      details.overflows = data_of<std::uint32_t>(part);
      details.has_overflows = true;
    }
  }
  return details;
}

}  // namespace

struct UdpArrivals::Arena {
  std::array<mmsghdr, kRun> headers{};
  std::array<SocketAddress, kRun> addresses;
  std::array<std::array<std::byte, kControlBytes>, kRun> controls alignas(cmsghdr){};
  std::array<iovec, kRun> parts{};
  std::array<std::array<std::byte, kMaxBytes>, kRun> bytes alignas(64){};
};

UdpArrivals::UdpArrivals(DropCounter& drops) : drops_(drops), arena_(std::make_unique<Arena>()) {
  for (std::size_t i = 0; i < kRun; ++i) arena_->parts[i] = {arena_->bytes[i].data(), kMaxBytes};
}

UdpArrivals::~UdpArrivals() = default;

Receipt UdpArrivals::hand_over(std::size_t index, Receiver& receiver) noexcept {
  msghdr& message = arena_->headers[index].msg_hdr;
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    drops_.count(Drop::kPayloadTooLong);
    return Receipt::kTaken;
  }
  auto details = read_control(message);
  details.envelope.source = arena_->addresses[index].gid();
  details.envelope.source_port = arena_->addresses[index].port();
  return receiver.on_datagram({.envelope = details.envelope,
                               .bytes = {arena_->bytes[index].data(), arena_->headers[index].msg_len},
                               .has_icrc = true});
}

void UdpArrivals::read(int socket, std::size_t run, std::uint32_t& overflows) noexcept {
  for (std::size_t i = 0; i < run; ++i) {
    msghdr& message = arena_->headers[i].msg_hdr;
    message.msg_name = arena_->addresses[i].get();
    message.msg_namelen = SocketAddress::kCapacity;
    message.msg_iov = &arena_->parts[i];
    message.msg_iovlen = 1;
    message.msg_control = arena_->controls[i].data();
    message.msg_controllen = kControlBytes;
    message.msg_flags = 0;
  }
  const NoCancel guard;
  const int count = ::recvmmsg(socket, arena_->headers.data(), static_cast<unsigned>(run), MSG_DONTWAIT, nullptr);
  first_ = 0;
  left_ = count < 0 ? 0 : static_cast<std::size_t>(count);
  if (left_ == 0) return;
  const auto last = read_control(arena_->headers[left_ - 1].msg_hdr);  // the kernel's count only grows
  if (last.has_overflows && last.overflows != overflows) {
    drops_.count(Drop::kSocketOverflow, last.overflows - overflows);
    overflows = last.overflows;
  }
}

std::size_t UdpArrivals::take(int socket, Receiver& receiver, std::size_t budget, std::uint32_t& overflows) noexcept {
  const std::size_t run = std::min(budget, kRun);
  if (left_ == 0) read(socket, run, overflows);
  std::size_t taken = 0;
  while (left_ != 0 && taken < run && hand_over(first_, receiver) == Receipt::kTaken) {
    ++first_;
    --left_;
    ++taken;
  }
  return taken;
}

}  // namespace verbena::transport
