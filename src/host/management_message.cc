#include "host/management_message.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order.h"

namespace verbena::host {
namespace {

constexpr std::uint32_t kMagic = 0x56626d64;  // "Vbmd"
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kClassAt = 6;
constexpr std::size_t kSourceAt = 8;
constexpr std::size_t kDestinationAt = kSourceAt + sizeof(Gid);
constexpr std::size_t kDatagramAt = kDestinationAt + sizeof(Gid);
static_assert(kDatagramAt + kManagementDatagramBytes == kManagementMessageBytes);

}  // namespace

std::array<std::byte, kManagementMessageBytes> encode(const ManagementMessage& message) noexcept {
  std::array<std::byte, kManagementMessageBytes> bytes{};
  store_be32(bytes.data(), kMagic);
  store_be16(bytes.data() + kVersionAt, kVersion);
  store_be8(bytes.data() + kClassAt, message.traffic_class);
  std::memcpy(bytes.data() + kSourceAt, message.source.bytes.data(), sizeof(Gid));
  std::memcpy(bytes.data() + kDestinationAt, message.destination.bytes.data(), sizeof(Gid));
  std::copy(message.datagram.begin(), message.datagram.end(), bytes.begin() + kDatagramAt);
  return bytes;
}

std::optional<ManagementMessage> decode_management_message(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != kManagementMessageBytes || load_be32(bytes.data()) != kMagic ||
      load_be16(bytes.data() + kVersionAt) != kVersion) {
    return std::nullopt;
  }
  ManagementMessage message;
  message.traffic_class = load_be8(bytes.data() + kClassAt);
  std::memcpy(message.source.bytes.data(), bytes.data() + kSourceAt, sizeof(Gid));
  std::memcpy(message.destination.bytes.data(), bytes.data() + kDestinationAt, sizeof(Gid));
  std::copy_n(bytes.begin() + kDatagramAt, kManagementDatagramBytes, message.datagram.begin());
  return message;
}

}  // namespace verbena::host
