// What can be said about the way to a peer. Pure functions on facts.
#pragma once

#include <optional>
#include <vector>

#include "rdma/doctor_facts.h"
#include "verbena/preflight.h"

namespace verbena::rdma {

// All of the below that apply, from what the peer was called to what the far end says of itself.
std::vector<Finding> check_path(const HostFacts& host, const PathFacts& path);

// Whether the destination can be one at all: `peer_address`.
Finding check_peer_address(const PathFacts& path);
// Which GID a datagram leaves from, or why none fits: `source_for_peer`.
Finding check_source(const PathFacts& path);
// Family and RoCE version against the GIDs the far end has: `gid_match`.
std::vector<Finding> check_gid_match(const HostFacts& host, const PathFacts& path);
// RoCE at one end and InfiniBand at the other: `peer_link_layer`; nothing where they are alike, or one is not known.
std::optional<Finding> check_link_layers(const PathFacts& path);
// DGID and DLID: in range, in this subnet, and of one port: `lid`.
std::vector<Finding> check_lid(const HostFacts& host, const PathFacts& path);
// The kernel's route against the interface of the device: `route`.
std::vector<Finding> check_route(const HostFacts& host, const PathFacts& path);
// The neighbour entry of the next hop: `neighbour`.
std::vector<Finding> check_neighbour(const HostFacts& host, const PathFacts& path);
// The hop limit against a path with a router: `hop_limit`.
std::vector<Finding> check_hop_limit(const PathFacts& path);
// The MTU of this port, the route, and the far port: `path_mtu`.
std::vector<Finding> check_path_mtu(const HostFacts& host, const PathFacts& path);
// The range of the Q_Key, and what its highest bit means: `qkey`.
std::vector<Finding> check_qkey(const PathFacts& path);
// The static rate against the speed of both ports: `static_rate`.
std::vector<Finding> check_traffic_class(const PathFacts& path);
std::vector<Finding> check_static_rate(const HostFacts& host, const PathFacts& path);
// As many peers against the device's address handles: `max_ah`.
std::vector<Finding> check_ah_limit(const HostFacts& host, const PathFacts& path);

// Whether data moved: `handshake`, `address_handle`, `probe`.
std::vector<Finding> check_probe(const ProbeFacts& probe, const PathFacts& path);

}  // namespace verbena::rdma
