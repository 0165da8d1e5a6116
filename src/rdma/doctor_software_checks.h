// What running processes have made: on the software RNIC, by its counters, and in their address-handle directories on
// any device. Pure functions on facts.
#pragma once

#include <vector>

#include "rdma/doctor_facts.h"
#include "verbena/preflight.h"

namespace verbena::rdma {

// The objects of each process on a software device, against that process's own limits: `resources`.
Finding check_software_resources(const HostFacts& host, const DeviceFacts& device);
// A finding for each directory: whether a limit refused something, or attempts fail: `directories`.
std::vector<Finding> check_directories(const HostFacts& host);

}  // namespace verbena::rdma
