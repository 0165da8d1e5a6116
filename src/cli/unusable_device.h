// A device that stands in the list and cannot be opened: why, in one sentence.
#pragma once

#include <string>
#include <vector>

#include "cli/device_settings.h"
#include "rdma/device_kind.h"
#include "rdma/doctor_facts.h"
#include "verbena/result.h"

namespace verbena::cli {

// `error`: of Context::open(). Where a software device's UDP port is taken, by whom that may be and what to do.
std::string why_unusable(rdma::DeviceKind kind, const Error& error);

// For a subcommand that says itself which devices cannot be used: where somebody holds UDP port 4791 of every address,
// the devices are not to say it as well, address by address, unless the user asked to hear them (VERBENA_LOG).
DeviceSettings settings_for_listing();
// The same, with the holders of the port.
DeviceSettings settings_for_listing(const std::vector<rdma::PortHolder>& holders);

}  // namespace verbena::cli
