// Where a datagram comes from, where it goes, and how the network is to treat it: what IP and UDP carry.
#pragma once

#include <cstdint>

#include "verbena/gid.h"

namespace verbena {

struct Envelope {
  Gid source;
  Gid destination;
  std::uint16_t source_port = 0;   // UDP; the destination port of RoCEv2 is always 4791
  std::uint8_t traffic_class = 0;  // IPv4 TOS, IPv6 traffic class: DSCP << 2 | ECN
  std::uint8_t hop_limit = 64;     // IPv4 TTL, IPv6 hop limit

  friend constexpr bool operator==(const Envelope&, const Envelope&) noexcept = default;
};

}  // namespace verbena
