// A device that stands in the list and cannot be opened: why, in one sentence.
#pragma once

#include <string>
#include <vector>

#include "cli/device_settings.h"
#include "rdma/device_kind.h"
#include "rdma/doctor_facts.h"
#include "verbena/result.h"

namespace verbena::cli {

// `error`: of Context::open(). Of a software device, where more is to be learned.
std::string why_unusable(rdma::DeviceKind kind, const Error& error);

// For a subcommand that says itself who holds UDP port 4791: where somebody does, the devices are not to warn of it as
// well, address by address, unless the user asked to hear them (VERBENA_LOG).
DeviceSettings settings_for_listing();
// The same, with the holders of the port.
DeviceSettings settings_for_listing(const std::vector<rdma::PortHolder>& holders);

}  // namespace verbena::cli
