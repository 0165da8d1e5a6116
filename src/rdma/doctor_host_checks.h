// What can be said about this process and this host, whatever the device. Pure functions on facts.
#pragma once

#include <optional>
#include <vector>

#include "rdma/doctor_facts.h"
#include "verbena/preflight.h"

namespace verbena::rdma {

// All of the below that apply.
std::vector<Finding> check_host(const HostFacts& host);

// The locked-memory limit, against whether a device here pins memory: `memlock`.
Finding check_memlock(const HostFacts& host);
// CAP_IPC_LOCK, CAP_NET_RAW, CAP_SYS_PTRACE, each where it matters: `capabilities`.
Finding check_capabilities(const HostFacts& host);
// /dev/infiniband, where the kernel has devices: `char_devices`.
std::vector<Finding> check_char_devices(const HostFacts& host);
// Shared or exclusive: `rdma_namespace`.
Finding check_namespace_mode(const HostFacts& host);
// Who holds UDP port 4791, where the software RNIC wants it: `udp_4791`.
Finding check_udp_port(const HostFacts& host);
// The same of 4797, where the software RNIC has InfiniBand ports: `udp_4797`.
std::optional<Finding> check_infiniband_udp_port(const HostFacts& host);
// Whether an interface loses packets under congestion, and what that will do: `loss_control`.
Finding check_loss_control(const InterfaceFacts& interface, DeviceKind kind);

}  // namespace verbena::rdma
