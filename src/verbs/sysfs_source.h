// The devices of this process as sysfs would show them.
//
// Thread-safety: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/sysfs_tree.h"

namespace verbena::verbs {

// As the device stands at this moment; nothing where none has that name.
std::optional<SysfsDevice> sysfs_device(std::string_view name);

std::vector<std::string> sysfs_device_names();

}  // namespace verbena::verbs
