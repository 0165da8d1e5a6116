// A GID: 16 bytes that name an RDMA port. On RoCEv2 it is the IP address of the port (IPv4 as ::ffff:a.b.c.d).
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "verbena/export.h"

namespace verbena {

struct Gid {
  std::array<std::uint8_t, 16> bytes{};

  friend constexpr auto operator<=>(const Gid&, const Gid&) = default;

  constexpr bool is_zero() const noexcept { return *this == Gid{}; }
  // ::ffff:a.b.c.d
  constexpr bool is_ipv4_mapped() const noexcept {
    constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(kPrefix.begin(), kPrefix.end(), bytes.begin());
  }
  // fe80::/10
  constexpr bool is_link_local() const noexcept { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  // fc00::/7
  constexpr bool is_unique_local() const noexcept { return (bytes[0] & 0xfe) == 0xfc; }
  // ff00::/8, or an IPv4-mapped 224.0.0.0/4
  constexpr bool is_multicast() const noexcept {
    return bytes[0] == 0xff || (is_ipv4_mapped() && (bytes[12] & 0xf0) == 0xe0);
  }
  // ::1, or an IPv4-mapped 127.0.0.0/8
  constexpr bool is_loopback() const noexcept {
    if (is_ipv4_mapped()) return bytes[12] == 127;
    Gid one{};
    one.bytes[15] = 1;
    return *this == one;
  }

  static constexpr Gid from_ipv4(std::uint32_t host_order_address) noexcept {
    Gid gid{};
    gid.bytes[10] = gid.bytes[11] = 0xff;
    for (std::size_t i = 0; i < 4; ++i) {
      gid.bytes[12 + i] = static_cast<std::uint8_t>(host_order_address >> (24 - 8 * i));
    }
    return gid;
  }
  // The IPv4 address in host order. Requires: is_ipv4_mapped().
  constexpr std::uint32_t ipv4() const noexcept {
    return (std::uint32_t{bytes[12]} << 24) | (std::uint32_t{bytes[13]} << 16) | (std::uint32_t{bytes[14]} << 8) |
           bytes[15];
  }
};

// Reads "a.b.c.d" or any IPv6 form; nothing for anything else.
VERBENA_API std::optional<Gid> parse_gid(std::string_view text);

// As inet_ntop writes it: "::ffff:10.0.0.1", "fe80::1".
VERBENA_API std::string to_string(const Gid& gid);

}  // namespace verbena

template <>
struct std::hash<verbena::Gid> {
  std::size_t operator()(const verbena::Gid& gid) const noexcept {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      high = (high << 8) | gid.bytes[i];
      low = (low << 8) | gid.bytes[8 + i];
    }
    std::uint64_t mixed = (high ^ (low * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));
  }
};
