// What a ping carries.
//
//    0        4        8                16
//    | "VBP1" | client | sequence       | pattern ...      big-endian
//
// The pattern depends on the sequence, so that a reply with the wrong bytes is found out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace verbena::cli {

inline constexpr std::size_t kPingHeaderBytes = 16;

struct PingHeader {
  std::uint32_t client = 0;  // as the server numbered it
  std::uint64_t sequence = 0;

  friend bool operator==(const PingHeader&, const PingHeader&) = default;
};

// Requires: payload.size() >= kPingHeaderBytes.
void write_ping(std::span<std::byte> payload, const PingHeader& header) noexcept;

// Nothing for what is no ping.
std::optional<PingHeader> read_ping(std::span<const std::byte> payload) noexcept;

// Whether the bytes behind the header are those that write_ping() wrote. Requires: read_ping(payload).
bool is_intact(std::span<const std::byte> payload) noexcept;

}  // namespace verbena::cli
