// What a connection between IP addresses adds in front of the private data of its REQ or SIDR_REQ, and the service it
// asks for (InfiniBand Architecture volume 1, annex A11).
//
//   byte 0  version 0 | IP version 4 bits, reserved 4 | source port 16
//   byte 4  source address 128; an IPv4 address in its last four bytes, behind zeros
//   byte 20 destination address 128
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbena/gid.h"

namespace verbena::wire {

// RDMA_PS_TCP and RDMA_PS_UDP of Linux.
enum class PortSpace : std::uint16_t { kTcp = 0x0106, kUdp = 0x0111 };

constexpr std::uint64_t service_id(PortSpace space, std::uint16_t port) noexcept {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}
constexpr std::uint16_t port_of_service(std::uint64_t service) noexcept {
  return static_cast<std::uint16_t>(service);
}

struct IpService {
  static constexpr std::size_t kSize = 36;

  std::uint16_t source_port = 0;
  Gid source;  // an IPv4 address mapped; both ends are of one family
  Gid destination;

  // Nothing for another version than 0, and for what is neither IPv4 nor IPv6.
  static std::optional<IpService> decode(std::span<const std::byte, kSize> bytes) noexcept;
  void encode(std::span<std::byte, kSize> out) const noexcept;

  friend bool operator==(const IpService&, const IpService&) = default;
};

}  // namespace verbena::wire
