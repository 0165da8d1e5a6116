// An epoll set whose members say what they are.
#pragma once

#include <cstdint>

#include "transport/fd.h"

namespace verbena::transport {

enum class WatchKind : std::uint8_t { kListener, kConnection, kPeer, kDoorbell };

// What a watched descriptor is, and which of its kind.
struct WatchTag {
  WatchKind kind = WatchKind::kDoorbell;
  std::uint64_t id = 0;  // below 2^56

  std::uint64_t packed() const noexcept { return (std::uint64_t{static_cast<std::uint8_t>(kind)} << 56) | id; }
  static WatchTag unpacked(std::uint64_t word) noexcept {
    return {static_cast<WatchKind>(word >> 56), word & 0x00ff'ffff'ffff'ffff};
  }
};

// False where the descriptor cannot be watched. A socket: until it is readable or at its end.
bool watch_socket(int epoll, int fd, WatchTag tag) noexcept;

// An eventfd: each write to it once; it is never read, so its owner cannot make anybody block.
bool watch_doorbell(int epoll, int fd, WatchTag tag) noexcept;

// Before the descriptor is closed: others may hold the same file open, and then closing is not enough.
void unwatch(int epoll, int fd) noexcept;

}  // namespace verbena::transport
