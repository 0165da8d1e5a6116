// The GIDs of a device: one call for the whole table, read again only after an event.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/export.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena {

enum class GidType : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2 };

// "InfiniBand", "RoCE v1", "RoCE v2".
VERBENA_API const char* to_string(GidType type) noexcept;

struct GidEntry {
  Gid gid;
  GidType type = GidType::kRoceV2;
  std::uint8_t port = 1;
  std::uint32_t index = 0;   // the place in the port's table: not stable, never a name
  std::uint32_t netdev = 0;  // interface index; 0 where the device does not say

  friend bool operator==(const GidEntry&, const GidEntry&) = default;
};

using GidEntries = std::shared_ptr<const std::vector<GidEntry>>;

// The filled places of the table, all ports. Holes and zero GIDs are left out, quietly.
VERBENA_API Result<std::vector<GidEntry>> read_gid_table(ibv_context* context);

// Thread-safety: any thread.
// Ownership:     keeps the context by pointer: it must stay open. A snapshot lives as long as its holder.
// Errors:        entries() returns what the device said.
class VERBENA_API GidTable {
 public:
  explicit GidTable(ibv_context* context) : context_(context) {}

  // The table as last read; reads it where it was invalidated or never read.
  Result<GidEntries> entries();
  // Call on IBV_EVENT_GID_CHANGE and port events: the next entries() reads again.
  void invalidate();

 private:
  ibv_context* context_;
  std::mutex mutex_;
  GidEntries entries_;            // guarded by mutex_; null where it must be read
  std::uint64_t generation_ = 0;  // guarded by mutex_; a read that an invalidation overtook is not kept
};

}  // namespace verbena
