#include "rdma/device_kind.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace verbena::rdma {

const char* to_string(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::kVerbena:
      return "verbena";
    case DeviceKind::kKernelSoftware:
      return "software";
    case DeviceKind::kHardware:
      return "hardware";
  }
  return "hardware";
}

DeviceKind kind_of(const ibv_device& device) {
  constexpr std::string_view kOurs = "verbena";
  const std::string_view name(static_cast<const char*>(device.name));
  if (name.substr(0, kOurs.size()) == kOurs) return DeviceKind::kVerbena;
  std::error_code error;
  const auto path = std::filesystem::canonical(static_cast<const char*>(device.ibdev_path), error);
  const bool is_virtual = !error && path.string().find("/sys/devices/virtual/") == 0;
  return is_virtual ? DeviceKind::kKernelSoftware : DeviceKind::kHardware;
}

}  // namespace verbena::rdma
