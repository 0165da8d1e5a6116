// A port that a user named by its number: whether the device has it, and whether it can be used now.
#pragma once

#include <cstdint>

#include "verbena/device.h"
#include "verbena/result.h"

namespace verbena::cli {

// Errors: kNotFound where the device has no port of this number, with those it has; kUnavailable where it is not
// active.
Result<PortView> active_port(const Context& context, std::uint8_t number);

}  // namespace verbena::cli
