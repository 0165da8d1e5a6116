// The interfaces of this network namespace, their addresses, and how their drivers treat congestion. The readers are
// pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rdma/doctor_facts.h"

namespace verbena::rdma {

// With the index of its interface.
using IndexedAddress = std::pair<std::uint32_t, InterfaceAddress>;

// From the text of /proc/net/if_inet6.
std::vector<IndexedAddress> read_inet6_addresses(std::string_view text);

// From one RTM_NEWADDR message's body; nothing for what is no IPv4 address.
std::optional<IndexedAddress> read_ipv4_address(std::span<const std::uint8_t> body);

// Adds what one DCB answer (RTM_GETDCB, behind its dcbmsg) tells: PFC, and rules from DSCP to priority.
void read_dcb(std::span<const std::uint8_t> attributes, LossControl& loss);

std::vector<InterfaceFacts> gather_interfaces();

// What the kernel knows of a neighbour on any interface. From one RTM_NEWNEIGH message's body; nothing for what is
// none.
std::optional<NeighbourFacts> read_neighbour(std::span<const std::uint8_t> body);
// All entries for that address.
std::vector<NeighbourFacts> gather_neighbours(const Gid& address);

}  // namespace verbena::rdma
