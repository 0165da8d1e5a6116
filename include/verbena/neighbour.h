// What the kernel's neighbour table says about an address: the MAC address that a new address handle would freeze.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "verbena/export.h"
#include "verbena/gid.h"
#include "verbena/network_change.h"
#include "verbena/result.h"

namespace verbena {

// Nothing where the table has no entry, or one without a valid address (incomplete, failed).
using NeighbourLookup = std::function<Result<std::optional<MacAddress>>(const Gid& next_hop, std::uint32_t netdev)>;

// Asks the kernel (rtnetlink), in the network namespace of the calling thread. Sends nothing to the network: where
// there is no entry, none is made. `next_hop` is the gateway of a routed destination, else the destination itself.
// Errors: kInvalidArgument (netdev 0), kNotFound (no such interface).
VERBENA_API Result<std::optional<MacAddress>> look_up_neighbour(const Gid& next_hop, std::uint32_t netdev);

}  // namespace verbena
