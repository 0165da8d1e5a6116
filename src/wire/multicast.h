// Multicast groups: MGID, IP group and Ethernet address name the same thing (annex A17; RFC 1112; RFC 2464).
//
// On RoCEv2 the MGID is the group's address as a GID: ::ffff:g for the IPv4 group g, the address itself for IPv6. So
// Gid::is_multicast() tells a group, and a datagram's destination GID is the MGID to look for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "verbena/gid.h"
#include "wire/mac_address.h"

namespace verbena::wire {

constexpr bool is_ipv4_group(std::uint32_t host_order_address) noexcept {
  return (host_order_address & 0xf0000000U) == 0xe0000000U;
}

// Nothing where the address is not a group.
constexpr std::optional<Gid> mgid_of_ipv4_group(std::uint32_t host_order_address) noexcept {
  if (!is_ipv4_group(host_order_address)) return std::nullopt;
  return Gid::from_ipv4(host_order_address);
}

// The IPv4 group in host order. Nothing where the MGID stands for an IPv6 group, or for no group at all.
constexpr std::optional<std::uint32_t> ipv4_group_of_mgid(const Gid& mgid) noexcept {
  if (!mgid.is_ipv4_mapped() || !mgid.is_multicast()) return std::nullopt;
  return mgid.ipv4();
}

// IPv4: 01:00:5e and the low 23 bits. IPv6: 33:33 and the low 32 bits. Nothing where `mgid` is not a group.
constexpr std::optional<MacAddress> mac_of_group(const Gid& mgid) noexcept {
  if (!mgid.is_multicast()) return std::nullopt;
  const auto& b = mgid.bytes;
  if (mgid.is_ipv4_mapped()) {
    return MacAddress{{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(b[13] & 0x7fU), b[14], b[15]}};
  }
  return MacAddress{{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

}  // namespace verbena::wire
