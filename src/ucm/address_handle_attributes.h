// The address handle with which a queue pair at a station reaches another, as the kernel hands it to programs.
#pragma once

#include <rdma/ib_user_verbs.h>

#include "ucm/station.h"

namespace verbena::ucm {

inline constexpr std::uint8_t kHopLimit = 64;

// The index is that which the GID has now.
ib_uverbs_ah_attr address_handle_attributes(const Station& from, const Gid& to, std::uint8_t traffic_class) noexcept;

// The port's MTU as the wire writes it: 1 is 256 bytes, 5 is 4096.
std::uint8_t path_mtu(const Station& station) noexcept;

}  // namespace verbena::ucm
