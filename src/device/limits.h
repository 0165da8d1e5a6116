// How much the devices offer, and what VERBENA_LIMITS may lower: "max_ah=64,max_qp=16".
#pragma once

#include <string_view>

#include "engine/limits.h"
#include "verbena/result.h"

namespace verbena::device {

engine::Limits standard_limits() noexcept;

// The standard with what the text says: names as in ibv_device_attr, whole numbers from 1 up to the standard.
// kInvalidArgument names the part that is wrong.
Result<engine::Limits> parse_limits(std::string_view text);

}  // namespace verbena::device
