// Whether a verbs device is Verbena's own, another software device, or hardware.
#pragma once

#include <infiniband/verbs.h>

namespace verbena::rdma {

enum class DeviceKind { kVerbena, kKernelSoftware, kHardware };

// "verbena", "software" (kernel rxe or siw), "hardware".
const char* to_string(DeviceKind kind) noexcept;

// By its name ("verbena0") and, for others, by what its sysfs entry hangs on: a software device has no bus.
DeviceKind kind_of(const ibv_device& device);

}  // namespace verbena::rdma
