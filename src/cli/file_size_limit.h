// The limit on the size of files (ulimit -f) counts for shared memory too, without which the software RNIC cannot open.
#pragma once

#include <cstdint>
#include <string>

namespace verbena::cli {

// In bytes; the largest number where there is none.
std::uint64_t file_size_limit();

// Why the software RNIC cannot be used under this limit, and what to do; empty where it can. Pure.
std::string file_size_shortage(std::uint64_t limit);

}  // namespace verbena::cli
