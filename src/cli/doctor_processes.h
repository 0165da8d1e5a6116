// What the doctor learns from running processes: who is on the software RNIC and what each has made there, and the
// address-handle directories of all.
#pragma once

#include <string_view>

#include "cli/counter_source.h"
#include "cli/directory_source.h"
#include "rdma/doctor_facts.h"

namespace verbena::cli {

// Asks all, and marks which holders of the UDP port are on the software RNIC. What does not answer is told as such.
void add_running_processes(rdma::HostFacts& host);

// Of one process; its limits are those of `standard`, where `environment` (of /proc/PID/environ) does not lower them.
rdma::SoftwareProcess software_process(const ProcessCounters& process, const rdma::DeviceFacts& standard,
                                       std::string_view environment);
std::vector<rdma::DirectoryFacts> directories_of(const DirectoryProcess& process);

}  // namespace verbena::cli
