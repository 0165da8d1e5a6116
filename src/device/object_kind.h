// What a context may make and how many of each: one row a kind, with the limit of the device, the call that makes one,
// and the gauge in the shared counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counter.h"
#include "engine/limits.h"

namespace verbena::device {

enum class ObjectKind : std::uint8_t {
  kProtectionDomain,
  kMemoryRegion,
  kMemoryWindow,
  kDeviceMemory,
  kAddressHandle,
  kCompletionQueue,
  kXrcDomain,
  kSharedReceiveQueue,
  kQueuePair,
  kFlow,
  kCount,
};
inline constexpr std::size_t kObjectKinds = static_cast<std::size_t>(ObjectKind::kCount);

struct ObjectRow {
  CounterRow gauge;
  std::string_view call;   // as it is named in VERBENA_INJECT
  std::string_view words;  // "address handles"
  std::uint32_t engine::Limits::*limit;
};

inline constexpr std::array<ObjectRow, kObjectKinds> kObjectRows{{
    {{"protection_domains", "objects", Side::kBoth, "Protection domains that exist."},
     "alloc_pd",
     "protection domains",
     &engine::Limits::max_pd},
    {{"memory_regions", "objects", Side::kBoth, "Memory regions that are registered."},
     "reg_mr",
     "memory regions",
     &engine::Limits::max_mr},
    {{"memory_windows", "objects", Side::kBoth, "Memory windows that exist, bound or not."},
     "alloc_mw",
     "memory windows",
     &engine::Limits::max_mw},
    {{"device_memories", "objects", Side::kBoth, "Pieces of device memory that are allocated."},
     "alloc_dm",
     "pieces of device memory",
     &engine::Limits::max_dm},
    {{"address_handles", "objects", Side::kBoth, "Address handles that exist."},
     "create_ah",
     "address handles",
     &engine::Limits::max_ah},
    {{"completion_queues", "objects", Side::kBoth, "Completion queues that exist."},
     "create_cq",
     "completion queues",
     &engine::Limits::max_cq},
    {{"xrc_domains", "objects", Side::kBoth, "XRC domains that are open; one for all who share it."},
     "open_xrcd",
     "XRC domains",
     &engine::Limits::max_xrcd},
    {{"shared_receive_queues", "objects", Side::kBoth, "Shared receive queues that exist."},
     "create_srq",
     "shared receive queues",
     &engine::Limits::max_srq},
    {{"queue_pairs", "objects", Side::kBoth, "Queue pairs that exist."},
     "create_qp",
     "queue pairs",
     &engine::Limits::max_qp},
    {{"flows", "objects", Side::kBoth, "Flows that raw packet queue pairs have."},
     "create_flow",
     "flows",
     &engine::Limits::max_flow},
}};

constexpr const ObjectRow& row_of(ObjectKind kind) noexcept {
  return kObjectRows[static_cast<std::size_t>(kind)];
}

}  // namespace verbena::device
