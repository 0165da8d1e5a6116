// The settings of this process, read from its environment at the first call.
#pragma once

#include "device/settings.h"

namespace verbena::device {

// Where a variable is wrong, the log says so once and there are no devices.
const Result<Settings>& environment() noexcept;

}  // namespace verbena::device
