// Why an attempt to connect was rejected (InfiniBand Architecture volume 1, table 12.6.7.2), as far as it is said here.
#pragma once

#include <cstdint>

namespace verbena::cm {

enum class Reason : std::uint16_t {
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidCommunicationId = 6,
  kInvalidServiceId = 8,
  kConsumer = 28,
};

// What a ServiceReply says (table 12.11.2.1).
enum class ServiceStatus : std::uint8_t { kValid = 0, kUnsupported = 1, kRejected = 2, kNoQueuePair = 3 };

}  // namespace verbena::cm
