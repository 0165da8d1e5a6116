// What can be said about the devices of this host, their ports and their GID tables. Pure functions on facts.
#pragma once

#include <vector>

#include "rdma/doctor_facts.h"
#include "verbena/preflight.h"

namespace verbena::rdma {

// Whether there is a device at all, can be listed and opened: checks `devices`, `device_open`.
std::vector<Finding> check_devices(const HostFacts& host);

// One port: `port_state`, `link_layer`, `gid_table`, `gid_addresses`, `gid_types`, `mtu`.
std::vector<Finding> check_port(const HostFacts& host, const DeviceFacts& device, const PortFacts& port);

// The parts of check_port(), each for itself.
Finding check_port_state(const HostFacts& host, const DeviceFacts& device, const PortFacts& port);
// What follows from InfiniBand or Ethernet: how peers are addressed, which tools fit.
Finding check_link_layer(const DeviceFacts& device, const PortFacts& port);
// Whether the port has a GID in this network namespace that is good for something.
Finding check_gid_table(const HostFacts& host, const DeviceFacts& device, const PortFacts& port);
// The GIDs against the addresses of the interface: what has no GID, what has no address, what is not usable yet.
std::vector<Finding> check_gid_addresses(const HostFacts& host, const DeviceFacts& device, const PortFacts& port);
// RoCE v1 and v2.
std::vector<Finding> check_gid_types(const DeviceFacts& device, const PortFacts& port);
// The port's MTU against the interface's.
std::vector<Finding> check_port_mtu(const HostFacts& host, const DeviceFacts& device, const PortFacts& port);

// What exists on the device against what it can hold: `resources`.
Finding check_resources(const HostFacts& host, const DeviceFacts& device);

}  // namespace verbena::rdma
