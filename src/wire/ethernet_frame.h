// What an Ethernet frame says of itself, as far as flow steering looks: the headers of Ethernet with its VLAN tags
// (IEEE 802.1Q), IPv4 (RFC 791) or IPv6 (RFC 8200) with its extension headers, TCP and UDP.
//
//   0             6             12     14
//   destination   source        tag*   type   IPv4 | IPv6 extension*   TCP | UDP
//
// A frame that ends in the middle of a header says as much as it holds; only one without an Ethernet header is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/mac_address.h"

namespace verbena::wire {

inline constexpr std::size_t kEthernetSize = 14;
inline constexpr std::size_t kVlanTagSize = 4;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint16_t kEtherTypeServiceVlan = 0x88a8;
inline constexpr std::uint8_t kProtocolTcp = 6;
inline constexpr std::uint8_t kProtocolUdp = 17;

// Bits of FrameFields::ipv4_flags.
inline constexpr std::uint8_t kIpv4DontFragment = 2;
inline constexpr std::uint8_t kIpv4MoreFragments = 4;

// Numbers are in host order. What the frame does not have is 0.
struct FrameFields {
  MacAddress destination;
  MacAddress source;
  std::uint16_t ether_type = 0;              // behind the last VLAN tag
  std::uint16_t vlan_tag = 0;                // of the first: priority 3, drop eligible 1, identifier 12
  std::uint8_t is_tagged = 0;                // 1: has a VLAN tag
  std::uint8_t ip_version = 0;               // 4 or 6, where the IP header is whole
  std::array<std::uint8_t, 16> ip_source{};  // of IPv4 the first four
  std::array<std::uint8_t, 16> ip_destination{};
  std::uint8_t next_header = 0;    // protocol of IPv4, next header of IPv6, as the IP header has it
  std::uint8_t traffic_class = 0;  // or TOS
  std::uint8_t hop_limit = 0;      // or TTL
  std::uint8_t ipv4_flags = 0;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t transport = 0;    // kProtocolTcp or kProtocolUdp where the ports are there: not in a later fragment
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;

  friend constexpr bool operator==(const FrameFields&, const FrameFields&) noexcept = default;
};

// Whether frames to it go to a group, or to all.
constexpr bool is_group(const MacAddress& mac) noexcept {
  return (mac.bytes[0] & 1U) != 0;
}

// Nothing for fewer than kEthernetSize bytes.
std::optional<FrameFields> read_frame(std::span<const std::byte> frame) noexcept;

}  // namespace verbena::wire
