// The 40 bytes in front of a received datagram, read back into a destination to answer to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbena/gid.h"

namespace verbena::verbs {

struct GrhAddress {
  Gid local;   // where the datagram went: the source of an answer
  Gid remote;  // where it came from
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
};

enum class GrhError : std::uint8_t { kNone, kUnknownProtocol, kMulticast };

inline constexpr std::size_t kGrhSize = 40;

// Decides as libibverbs does: bytes that begin with version 6 are an IPv6 header, unless byte 20 begins an IPv4 header
// of 20 bytes whose checksum is right; any other first byte needs version 4 at byte 20. A datagram that went to a
// multicast group has no local address to answer from.
GrhError read_grh(std::span<const std::byte, kGrhSize> bytes, GrhAddress& address) noexcept;

// As it comes on an InfiniBand port: laid out as an IPv6 header, with the next header 0x1b.
GrhError read_infiniband_grh(std::span<const std::byte, kGrhSize> bytes, GrhAddress& address) noexcept;

}  // namespace verbena::verbs
