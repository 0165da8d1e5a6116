// Ethernet addresses, as the kernel knows them. Our own packets need none: the kernel routes them. Programs that build
// frames themselves ask for them through ibv_resolve_eth_l2_from_gid().
#pragma once

#include <cstdint>

#include "verbena/gid.h"

namespace verbena::verbs {

inline constexpr std::uint16_t kNoVlan = 0xffff;

// Of the interface itself. 0 or an errno.
int own_mac(unsigned interface, std::uint8_t* mac) noexcept;

// Of the station that packets to `destination` go to: the group's own for multicast, else from the kernel's neighbour
// table. EHOSTUNREACH where the table does not know it.
int find_neighbour(unsigned interface, const Gid& destination, std::uint8_t* mac) noexcept;

}  // namespace verbena::verbs
