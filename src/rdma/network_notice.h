// From a notice of rtnetlink to a change that a directory understands. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rdma/netlink.h"
#include "verbena/network_change.h"

namespace verbena::rdma {

// One message: its type, and what stands behind the header. Nothing where it tells no directory anything: another
// family or type, a route of multicast, broadcast or anycast or one cloned from another, a bridge's own table, a
// neighbour without an Ethernet address; or too few bytes.
std::optional<NetworkChange> read_notice(std::uint16_t type, Octets body);

// Each change in one datagram, which may hold several messages. Ends at the first that does not fit.
void read_notices(Octets datagram, const std::function<void(const NetworkChange&)>& take);

}  // namespace verbena::rdma
