// How fast a network interface is, as the kernel says.
#pragma once

#include <cstdint>
#include <string>

namespace verbena::device {

// In megabits a second; 0 where it does not tell, as loopback.
long interface_megabits(const std::string& interface) noexcept;

// In bits a second; 10 Gbit/s where it does not tell.
std::uint64_t interface_bits_per_second(const std::string& interface) noexcept;

}  // namespace verbena::device
