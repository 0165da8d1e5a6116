// A memory region: a stretch of the process' memory that work requests may name, and what they may do with it.
#pragma once

#include <cstdint>

#include "base/strong.h"
#include "engine/protection_domain.h"
#include "verbena/result.h"

namespace verbena::engine {

// Values of enum ibv_access_flags.
using AccessFlags = std::uint32_t;
inline constexpr AccessFlags kLocalRead = 0;  // always granted
inline constexpr AccessFlags kLocalWrite = 1;
inline constexpr AccessFlags kRemoteWrite = 2;
inline constexpr AccessFlags kRemoteRead = 4;
inline constexpr AccessFlags kRemoteAtomic = 8;
inline constexpr AccessFlags kMemoryWindowBind = 16;
inline constexpr AccessFlags kZeroBased = 32;
inline constexpr AccessFlags kOnDemand = 64;
inline constexpr AccessFlags kHugePages = 128;
inline constexpr AccessFlags kFlushGlobal = 256;
inline constexpr AccessFlags kFlushPersistent = 512;
// Of a question, never of a region: whether the rights are there, wherever the memory is.
inline constexpr AccessFlags kCheckOnly = 1U << 31;
// Hints that a device which does not know them must ignore.
inline constexpr AccessFlags kOptionalAccess = 0x3ff00000;
inline constexpr AccessFlags kKnownAccess = 0x3ff | kOptionalAccess;

// Of a null region, which none but alloc_null_mr makes: what is read from it is zero, what is written is thrown away.
inline constexpr AccessFlags kNull = 1U << 30;
// What a look-up has to do more for than to check.
inline constexpr AccessFlags kSpecialAccess = kOnDemand | kNull;

class MemoryWindow;

struct MemoryRegion {
  const ProtectionDomain* domain = nullptr;
  std::uint64_t address = 0;  // where it lies in the process
  std::uint64_t length = 0;
  std::uint64_t iova = 0;  // what work requests call its first byte: `address`, a number of the user's, or 0
  AccessFlags access = 0;
  MemoryKey key;  // lkey and rkey; given by MemoryTable::insert()

  std::uint64_t sink = 0;  // of a null region, where writes go: 4 GiB, as there are zeros at `address`

  std::uint32_t bound_windows = 0;  // of the one thread that changes the table
  MemoryWindow* window = nullptr;   // set in the entry that a window has in the table, which is no region
};

// EINVAL for unknown flags, for remote write or atomic without local write, and for a region that wraps around the end
// of the address space.
Status check_region(const MemoryRegion& region);

}  // namespace verbena::engine
