// Where a datagram goes and how the network is to treat it. Not a verbs attribute: no index, no source to configure.
#pragma once

#include <cstdint>

#include "verbena/gid.h"

namespace verbena {

// Two destinations with equal fields are one entry of a directory.
struct Destination {
  Gid gid;                            // RoCE: the IP address; zero only for an InfiniBand destination by LID alone
  Gid source;                         // zero: chosen by route, family, type and scope
  std::uint32_t flow_label = 0;       // 20 bits; what is above them is ignored
  std::uint32_t netdev = 0;           // interface index to leave by; 0: as the route says
  std::uint16_t lid = 0;              // InfiniBand only
  std::uint8_t traffic_class = 0;     // DSCP << 2 | ECN
  std::uint8_t service_level = 0;     // 0 to 15
  std::uint8_t hop_limit = 64;        // 1 cannot cross a router; 0 is refused
  std::uint8_t static_rate = 0;       // an ibv_rate; 0: as fast as the port
  std::uint8_t source_path_bits = 0;  // InfiniBand only, 0 to 127
  std::uint8_t port = 0;              // 0: the directory's; another than the directory's is refused

  friend bool operator==(const Destination&, const Destination&) = default;
};

}  // namespace verbena
