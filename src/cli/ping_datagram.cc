#include "cli/ping_datagram.h"

#include "base/byte_order.h"

namespace verbena::cli {
namespace {

constexpr std::uint32_t kMagic = 0x56425031;

constexpr std::byte pattern(std::uint64_t sequence, std::size_t at) noexcept {
  return static_cast<std::byte>((sequence * 31 + at) & 0xff);
}

}  // namespace

void write_ping(std::span<std::byte> payload, const PingHeader& header) noexcept {
  store_be32(payload.data(), kMagic);
  store_be32(payload.data() + 4, header.client);
  store_be64(payload.data() + 8, header.sequence);
  for (std::size_t at = kPingHeaderBytes; at < payload.size(); ++at) payload[at] = pattern(header.sequence, at);
}

std::optional<PingHeader> read_ping(std::span<const std::byte> payload) noexcept {
  if (payload.size() < kPingHeaderBytes || load_be32(payload.data()) != kMagic) return std::nullopt;
  return PingHeader{load_be32(payload.data() + 4), load_be64(payload.data() + 8)};
}

bool is_intact(std::span<const std::byte> payload) noexcept {
  const std::uint64_t sequence = load_be64(payload.data() + 8);
  for (std::size_t at = kPingHeaderBytes; at < payload.size(); ++at) {
    if (payload[at] != pattern(sequence, at)) return false;
  }
  return true;
}

}  // namespace verbena::cli
