// The messages on a slot's socket. One message a packet of SOCK_SEQPACKET, with descriptors beside it:
//
//   kind            from      descriptors (SCM_RIGHTS)        meaning
//   open_ring       sender    ring memfd, doorbell eventfd    "I shall write datagrams for you into this ring"
//   read_counters   anyone    none                            "send me your counters"
//   counters        slot      counter page (read only)        the answer; the slot closes the connection after it
//
// open_ring has no answer: a slot that does not like it closes the connection. The end of the connection is the end
// of the process at the other side.
//
//    0       4       6       8       12      16             24  bytes, big-endian
//    | magic | vers. | kind  | pid   | slot  | memory bytes |
//
// A later version may append; a reader takes the 24 bytes it knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/strong.h"

namespace verbena::host {

enum class HelloKind : std::uint16_t { kOpenRing = 1, kReadCounters = 2, kCounters = 3 };

struct Hello {
  HelloKind kind = HelloKind::kOpenRing;
  Slot slot;                       // of the process that speaks; 0 where it has none
  std::uint32_t pid = 0;           // as the speaker sees it; for display
  std::uint64_t memory_bytes = 0;  // of the ring or page whose descriptor comes along

  friend bool operator==(const Hello&, const Hello&) = default;
};

inline constexpr std::size_t kHelloBytes = 24;

std::array<std::byte, kHelloBytes> encode(const Hello& hello) noexcept;

// Nothing for a message that is too short, or has another magic, version or kind.
std::optional<Hello> decode_hello(std::span<const std::byte> message) noexcept;

// How many descriptors come with a message of this kind.
constexpr std::size_t descriptors_with(HelloKind kind) noexcept {
  switch (kind) {
    case HelloKind::kOpenRing:
      return 2;
    case HelloKind::kReadCounters:
      return 0;
    case HelloKind::kCounters:
      return 1;
  }
  return 0;
}

}  // namespace verbena::host
