// Something in the network changed that an address handle may have frozen: what rtnetlink says, in the words of a
// directory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "verbena/gid.h"

namespace verbena {

using MacAddress = std::array<std::uint8_t, 6>;

struct NetworkChange {
  enum class Kind {
    kNeighbour,  // address: the neighbour; mac: what it resolves to now, nothing where it failed or is gone
    kAddress,    // address: one of this host's
    kRoute,      // address and prefix_length: what the route leads to
    kLink,       // netdev: up, down, renamed, another MAC address or another MTU
    kLost,       // notices were lost: anything may have changed
  };

  Kind kind = Kind::kLost;
  std::uint32_t netdev = 0;                   // interface index; 0: any
  std::optional<Gid> address = std::nullopt;  // nothing: any
  std::uint8_t prefix_length = 128;           // of `address` as a GID: an IPv4 prefix counts the 96 bits in front
  bool removed = false;
  std::optional<MacAddress> mac = std::nullopt;  // kNeighbour and kLink

  // Whether `gid` lies in the prefix.
  constexpr bool concerns(const Gid& gid) const noexcept {
    if (!address) return true;
    for (unsigned bit = 0; bit < prefix_length && bit < 128; bit += 8) {
      const unsigned left = prefix_length - bit;
      const auto mask = static_cast<std::uint8_t>(left >= 8 ? 0xff : 0xff << (8 - left));
      if (((gid.bytes[bit / 8] ^ address->bytes[bit / 8]) & mask) != 0) return false;
    }
    return true;
  }
};

}  // namespace verbena
