// Network interfaces of this network namespace, by index.
#pragma once

#include <cstdint>
#include <string>

namespace verbena::cli {

// Empty where there is no such interface here.
std::string interface_name(std::uint32_t index);

// Whether it is administratively up.
bool interface_is_up(const std::string& name);

// 0 where there is none of this name.
std::uint32_t interface_mtu(const std::string& name);

}  // namespace verbena::cli
