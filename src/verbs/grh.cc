#include "verbs/grh.h"

#include <algorithm>

#include "base/byte_order.h"

namespace verbena::verbs {
namespace {

constexpr std::size_t kIpv4Start = 20;
constexpr std::size_t kIpv4Size = 20;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kInfiniband = 0x1b;  // of a GRH

std::uint8_t version_at(const std::byte* at) noexcept {
  return static_cast<std::uint8_t>(load_be8(at) >> 4);
}

// A header whose checksum is right sums to all ones.
bool ipv4_checksum_holds(const std::byte* header) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kIpv4Size; i += 2) sum += load_be16(header + i);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

Gid gid_at(const std::byte* at) noexcept {
  Gid gid;
  std::transform(at, at + gid.bytes.size(), gid.bytes.begin(),
                 [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return gid;
}

GrhError read_ipv4(const std::byte* header, GrhAddress& address) noexcept {
  address.local = Gid::from_ipv4(load_be32(header + 16));
  if (address.local.is_multicast()) return GrhError::kMulticast;
  address.remote = Gid::from_ipv4(load_be32(header + 12));
  address.traffic_class = load_be8(header + 1);
  address.hop_limit = load_be8(header + 8);
  return GrhError::kNone;
}

GrhError read_ipv6(const std::byte* header, std::uint8_t wanted, GrhAddress& address) noexcept {
  address.local = gid_at(header + 24);
  if (address.local.bytes[0] == 0xff) return GrhError::kMulticast;
  if (load_be8(header + 6) != wanted) return GrhError::kUnknownProtocol;
  address.remote = gid_at(header + 8);
  address.hop_limit = load_be8(header + 7);
  address.traffic_class = static_cast<std::uint8_t>(load_be32(header) >> 20);
  return GrhError::kNone;
}

}  // namespace

GrhError read_grh(std::span<const std::byte, kGrhSize> bytes, GrhAddress& address) noexcept {
  const std::byte* const ipv4 = bytes.data() + kIpv4Start;
  address = {};
  address.flow_label = load_be32(bytes.data()) & 0xfffff;
  if (version_at(bytes.data()) != 6) {
    return version_at(ipv4) == 4 ? read_ipv4(ipv4, address) : GrhError::kUnknownProtocol;
  }
  const bool short_header = (load_be8(ipv4) & 0xf) == 5;
  return short_header && ipv4_checksum_holds(ipv4) ? read_ipv4(ipv4, address) : read_ipv6(bytes.data(), kUdp, address);
}

GrhError read_infiniband_grh(std::span<const std::byte, kGrhSize> bytes, GrhAddress& address) noexcept {
  address = {};
  address.flow_label = load_be32(bytes.data()) & 0xfffff;
  if (version_at(bytes.data()) != 6) return GrhError::kUnknownProtocol;
  return read_ipv6(bytes.data(), kInfiniband, address);
}

}  // namespace verbena::verbs
