// The IP and UDP headers of a RoCEv2 packet, byte for byte as they stand on the wire, because the ICRC covers them and
// because a UD receiver finds them in front of its payload (InfiniBand Architecture volume 1, annex A17).
//
// IPv4: ID 0, DF set, UDP checksum 0: what the kernel makes of an unconnected UDP socket with path MTU discovery.
// IPv6: flow label 0, UDP checksum 0. IPv4 is used where both ends are IPv4-mapped GIDs, IPv6 everywhere else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/envelope.h"

namespace verbena::wire {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::size_t kIpv4Size = 20;
inline constexpr std::size_t kIpv6Size = 40;
inline constexpr std::size_t kUdpSize = 8;
inline constexpr std::size_t kMaxNetworkHeaderSize = kIpv6Size + kUdpSize;
inline constexpr std::size_t kGrhSize = 40;

constexpr bool is_ipv4(const Envelope& envelope) noexcept {
  return envelope.source.is_ipv4_mapped() && envelope.destination.is_ipv4_mapped();
}

constexpr std::size_t network_header_size(const Envelope& envelope) noexcept {
  return (is_ipv4(envelope) ? kIpv4Size : kIpv6Size) + kUdpSize;
}

// IP and UDP header in one piece.
class NetworkHeader {
 public:
  // `udp_payload_size` counts everything behind the UDP header, the ICRC included. Requires: it fits a UDP datagram.
  NetworkHeader(const Envelope& envelope, std::size_t udp_payload_size,
                std::uint16_t destination_port = kRoceUdpPort) noexcept;

  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, kMaxNetworkHeaderSize> bytes_;
  std::size_t size_;
};

// What an IP packet that carries UDP says; for captures, where the bytes are all there.
struct NetworkHeaderView {
  Envelope envelope{};
  std::uint16_t destination_port = 0;
  std::uint16_t ipv4_id = 0;
  bool dont_fragment = false;
  std::uint32_t flow_label = 0;
  std::uint16_t udp_checksum = 0;
  bool checksum_valid = true;                // of the IPv4 header
  std::span<const std::byte> header{};       // IP and UDP header, as compute_icrc() takes them
  std::span<const std::byte> udp_payload{};  // as long as the UDP length says
};

// `ip_packet` begins with the IP header and may be longer than the packet (Ethernet padding). Nothing where it is not
// whole, is a fragment, carries IPv4 options or IPv6 extension headers, or is not UDP.
std::optional<NetworkHeaderView> parse_network_header(std::span<const std::byte> ip_packet) noexcept;

// The 40 bytes in front of a received UD payload. IPv4: 20 zero bytes and the IPv4 header with a valid checksum;
// IPv6: the IPv6 header. `udp_payload_size` as above, ICRC included even where the packet came without one.
void write_grh(const Envelope& envelope, std::size_t udp_payload_size, std::span<std::byte, kGrhSize> out) noexcept;

}  // namespace verbena::wire
