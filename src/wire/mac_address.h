// An Ethernet address, and the GIDs made from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "verbena/gid.h"

namespace verbena::wire {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) noexcept = default;
};

// The modified EUI-64 of a port: ff:fe in the middle, the universal/local bit inverted (RFC 4291, appendix A).
constexpr std::array<std::uint8_t, 8> eui64_of(const MacAddress& mac) noexcept {
  const auto& b = mac.bytes;
  return {static_cast<std::uint8_t>(b[0] ^ 0x02U), b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]};
}

// fe80::/64 with the EUI-64: the link-local address that IPv6 derives from the MAC.
constexpr Gid link_local_gid(const MacAddress& mac) noexcept {
  Gid gid{};
  gid.bytes[0] = 0xfe;
  gid.bytes[1] = 0x80;
  const auto identifier = eui64_of(mac);
  for (std::size_t i = 0; i < identifier.size(); ++i) gid.bytes[8 + i] = identifier[i];
  return gid;
}

}  // namespace verbena::wire
