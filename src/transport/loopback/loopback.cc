#include "transport/loopback/loopback.h"

#include <mutex>

namespace verbena::transport {
namespace {

std::span<std::byte> formatted(std::span<std::byte> memory) noexcept {
  host::format_ring(memory);
  return memory;
}

}  // namespace

Loopback::Loopback(std::size_t ring_capacity, int doorbell, Duration stall_limit)
    : line_count_(host::ring_memory_bytes(ring_capacity) / host::kCacheLine),
      lines_(std::make_unique<Line[]>(line_count_)),
      sender_(formatted(memory()), doorbell, stall_limit) {}

SendResult Loopback::send(std::span<const Outgoing> batch, Instant now, DropCounter& drops) noexcept {
  const std::lock_guard lock(lock_);
  return sender_.send(batch, now, drops).sent;
}

}  // namespace verbena::transport
