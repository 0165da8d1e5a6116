// Whether a stretch of this process' memory is there and may be used as a memory region is to be: what the kernel finds
// out when it pins the pages for hardware.
#pragma once

#include <cstdint>
#include <istream>

namespace verbena::device {

// 0; EFAULT where a page of it is not mapped, or may not be read, or (`writable`) may not be written; EINVAL where it
// holds no page (nothing, at the beginning of one). `maps` is read as /proc/self/maps.
int check_mapped(std::istream& maps, std::uint64_t address, std::uint64_t length, bool writable);

// The same of this process. 0 where /proc is not there to ask.
int check_mapped(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace verbena::device
