// The asynchronous events that objects raise; the numbers are those of enum ibv_event_type. Port events: port.h.
#pragma once

#include <cstdint>

namespace verbena::device {

enum class AsyncEvent : std::uint32_t {
  kCqError = 0,
  kQpFatal = 1,
  kSendQueueDrained = 5,
  kSrqLimitReached = 15,
  kLastWqeReached = 16,
};

}  // namespace verbena::device
