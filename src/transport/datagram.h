// A datagram as the transports see it: an envelope and bytes. What the bytes mean is not known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/drop.h"
#include "base/envelope.h"
#include "base/instant.h"
#include "base/strong.h"

namespace verbena::transport {

using ConstBytes = std::span<const std::byte>;

// One datagram to send. Everything it points to stays valid until send() returns, no longer.
struct Outgoing {
  const Envelope* envelope = nullptr;
  std::span<const ConstBytes> parts;  // the UDP payload, in order
  std::uint32_t size = 0;             // the sum of the parts
  Slot slot;                          // which process on the destination host it is for
  bool has_icrc = false;              // the last four bytes are an ICRC that the receiver must check
  ConstBytes network_header;          // the IP and UDP headers as they stand on the wire; empty where not has_icrc
};

// One datagram that arrived. Valid during the call it is handed to. The bytes may lie in memory that the sending
// process can still write: read each once, and never check first and read again.
struct Incoming {
  Envelope envelope;
  ConstBytes bytes;
  bool has_icrc = false;
};

struct SendResult {
  std::size_t taken = 0;  // how many, from the front, were sent or dropped
  bool full = false;      // the next one met a full queue
};

class DropCounter {
 public:
  virtual void count(Drop drop, std::uint64_t how_many = 1) noexcept = 0;
  // Says in words what went wrong outside, for the log; each sender or receiver says the same thing only once.
  virtual void explain(std::string_view /*sentence*/) noexcept {}

 protected:
  ~DropCounter() = default;
};

// The seam that the ways of sending and their decorators share. A batch is sent in order.
//
// Thread-safety: any thread may call send(); an implementation says what it holds meanwhile.
class Sender {
 public:
  virtual ~Sender() = default;
  // Takes datagrams from the front of `batch` until one meets a full queue. Nothing of the batch is kept.
  virtual SendResult send(std::span<const Outgoing> batch, Instant now) noexcept = 0;
};

enum class Receipt : std::uint8_t {
  kTaken,
  kLater,  // nobody has room now: the transport keeps it, and offers it again first
};

class Receiver {
 public:
  virtual Receipt on_datagram(const Incoming& datagram) noexcept = 0;

 protected:
  ~Receiver() = default;
};

}  // namespace verbena::transport
