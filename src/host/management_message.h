// A management datagram between processes of one host: whom it is from, whom it is to, and its 256 bytes.
//
//    0       4         6        7     8         24          40     bytes, big-endian
//    | magic | version | class  | 0   | source  | destination | MAD 256 |
//
// `class` is the traffic class. A reader takes exactly this length: a later version has another number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbena/gid.h"

namespace verbena::host {

inline constexpr std::size_t kManagementDatagramBytes = 256;
inline constexpr std::size_t kManagementMessageBytes = 40 + kManagementDatagramBytes;

struct ManagementMessage {
  Gid source;
  Gid destination;
  std::uint8_t traffic_class = 0;
  std::array<std::byte, kManagementDatagramBytes> datagram{};

  friend bool operator==(const ManagementMessage&, const ManagementMessage&) = default;
};

std::array<std::byte, kManagementMessageBytes> encode(const ManagementMessage& message) noexcept;

// Nothing for another length, magic or version.
std::optional<ManagementMessage> decode_management_message(std::span<const std::byte> bytes) noexcept;

}  // namespace verbena::host
