// Where a datagram comes from, where it goes, and how the network is to treat it: what IP and UDP carry, or on an
// InfiniBand link its local and global route headers.
#pragma once

#include <cstdint>

#include "verbena/gid.h"

namespace verbena {

// What only a packet on an InfiniBand link says (LRH and GRH, InfiniBand Architecture volume 1, chapters 7 and 8).
struct LinkRoute {
  std::uint32_t flow_label = 0;       // 20 bits, of the GRH
  std::uint16_t source_lid = 0;       // of what arrived; what leaves gets that which its port has at that moment
  std::uint16_t destination_lid = 0;  // never 0 on an InfiniBand link
  std::uint16_t port = 0;             // of what leaves: which of the ports of this process sends it
  std::uint8_t path_bits = 0;         // of the LID at this end: what it adds to the port's first one
  std::uint8_t service_level = 0;     // 4 bits
  bool has_grh = false;  // else the GIDs, traffic class, hop limit and flow label of the packet say nothing

  friend constexpr bool operator==(const LinkRoute&, const LinkRoute&) noexcept = default;
};

struct Envelope {
  Gid source;
  Gid destination;
  std::uint16_t source_port = 0;   // UDP; the destination port of RoCEv2 is always 4791
  std::uint8_t traffic_class = 0;  // IPv4 TOS, IPv6 traffic class: DSCP << 2 | ECN
  std::uint8_t hop_limit = 64;     // IPv4 TTL, IPv6 hop limit
  LinkRoute link{};                // all zero for RoCE

  constexpr bool is_infiniband() const noexcept { return link.destination_lid != 0; }

  friend constexpr bool operator==(const Envelope&, const Envelope&) noexcept = default;
};

}  // namespace verbena
