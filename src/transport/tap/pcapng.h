// The three blocks of the pcapng format that a tap writes (draft-ietf-opsawg-pcapng): section header, interface
// description, enhanced packet. Host byte order, as the format allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/datagram.h"

namespace verbena::transport::pcapng {

// One section with one interface: raw IP packets, times in nanoseconds.
std::vector<std::byte> file_head();

// A packet of at most this many bytes is recorded whole, a longer one is cut.
inline constexpr std::size_t kMaxPacket = 8192;
inline constexpr std::size_t kMaxBlock = kMaxPacket + 64;

struct Packet {
  std::int64_t time_ns = 0;  // since 1970
  std::uint32_t flags = 0;   // 1 inbound, 2 outbound
  ConstBytes head;
  std::span<const ConstBytes> parts;
};

// Writes an enhanced packet block into `block`; returns its length.
std::size_t write_packet(const Packet& packet, std::span<std::byte, kMaxBlock> block) noexcept;

}  // namespace verbena::transport::pcapng
