// Sends batches into one packet ring: when it is full, when its reader has stalled, and when to ring the doorbell.
#pragma once

#include <cstdint>
#include <span>

#include "host/packet_ring.h"
#include "transport/datagram.h"

namespace verbena::transport {

// Thread-safety: none; one owner at a time.
// Ownership:     neither the ring's memory nor the doorbell is its own.
class RingSender {
 public:
  struct Outcome {
    SendResult sent;
    bool broken = false;  // the reader wrote what cannot be: give the ring up
  };

  // `memory` is a ring just formatted; `doorbell` an eventfd that its reader watches.
  RingSender(std::span<std::byte> memory, int doorbell, Duration stall_limit) noexcept
      : ring_(memory), doorbell_(doorbell), stall_limit_(stall_limit) {}

  // A full ring whose reader took nothing for stall_limit drops what does not fit, as kPeerStalled.
  Outcome send(std::span<const Outgoing> batch, Instant now, DropCounter& drops) noexcept;

  // Rings where the reader has taken nothing since the last call though something is there, and it does not sleep: once
  // for each time it comes to a halt.
  void nudge() noexcept;

  std::uint64_t count_unread() noexcept { return ring_.count_unread(); }

 private:
  bool is_stalled(Instant now) noexcept;

  host::RingProducer ring_;
  int doorbell_;
  Duration stall_limit_;
  std::uint64_t full_at_ = ~std::uint64_t{0};  // what the reader had consumed when the ring was first found full
  Instant full_since_;
  std::uint64_t seen_at_nudge_ = ~std::uint64_t{0};  // what the reader had consumed
  bool nudged_ = false;                              // since it last moved
};

}  // namespace verbena::transport
