// Datagrams of a process to itself: a packet ring in its own memory, with the doorbell of its own reader.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "transport/datagram.h"
#include "transport/shm/ring_sender.h"
#include "transport/spin_lock.h"

namespace verbena::transport {

// Thread-safety: send(): any thread; a spin lock is held. memory() is for the one reader.
// Ownership:     the doorbell stays the caller's.
class Loopback final {
 public:
  // Requires: host::is_ring_capacity(ring_capacity).
  Loopback(std::size_t ring_capacity, int doorbell, Duration stall_limit);

  SendResult send(std::span<const Outgoing> batch, Instant now, DropCounter& drops) noexcept;
  std::span<std::byte> memory() noexcept { return std::as_writable_bytes(std::span(lines_.get(), line_count_)); }

 private:
  struct alignas(host::kCacheLine) Line {
    std::array<std::byte, host::kCacheLine> bytes{};
  };

  std::size_t line_count_;
  std::unique_ptr<Line[]> lines_;
  SpinLock lock_;  // guards sender_
  RingSender sender_;
};

}  // namespace verbena::transport
