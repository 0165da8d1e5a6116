// Two stretches of address space behind null regions: one reads as zeros, one takes what is written and keeps little of
// it. Each is as long as the longest piece of a work request; together they use at most 16 MiB of memory and the page
// tables.
//
// Thread-safety: any thread.
// Ownership:     mapped at the first use and never unmapped.
#pragma once

#include <cstdint>

#include "verbena/result.h"

namespace verbena::device {

struct NullMemory {
  std::uint64_t zeros = 0;
  std::uint64_t sink = 0;
};

// ENOMEM where the address space does not have the room.
Result<NullMemory> null_memory();

}  // namespace verbena::device
