// Why memory may not be used, or a window not be bound. The number is what an error completion carries as vendor_err.
#pragma once

#include <cstdint>

namespace verbena::engine {

enum class MemoryFault : std::uint8_t {
  kNone,
  kUnknownKey,
  kOtherDomain,
  kOutOfBounds,
  kNoAccess,
  kOtherQueuePair,  // a window of type 2 that another queue pair bound
  kNotMapped,       // memory of an on-demand region that is not there
  kWindowState,     // a window that is not of the type, or not free, or bound to nothing
};

}  // namespace verbena::engine
