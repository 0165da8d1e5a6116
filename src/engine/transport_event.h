// What happens between the two ends of a connection that a user may want counted: retries, duplicates, refusals.
#pragma once

#include <cstdint>

namespace verbena::engine {

enum class TransportEvent : std::uint8_t {
  kDuplicateRequest,
  kOutOfSequence,
  kRnrNakSent,
  kRnrNakReceived,
  kSequenceNakReceived,
  kRetransmission,
  kTimeout,
  kRetryExceeded,
  kRnrRetryExceeded,
  kAckSent,
  kCnpSent,
  kCnpHandled,
  kEcnMarked,
  kSentAgain,
  kKeptEarly,
  kSelectiveAckSent,
  kSelectiveAckReceived,
};

// Thread-safety: any thread.
class TransportObserver {
 public:
  virtual void on_transport_event(TransportEvent event) noexcept = 0;

 protected:
  ~TransportObserver() = default;
};

}  // namespace verbena::engine
