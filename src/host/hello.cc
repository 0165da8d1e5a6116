#include "host/hello.h"

#include "base/byte_order.h"
#include "host/slot_name.h"

namespace verbena::host {
namespace {

constexpr std::uint32_t kMagic = 0x56524248;  // "VRBH"

constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = kMagicAt + 4;
constexpr std::size_t kKindAt = kVersionAt + 2;
constexpr std::size_t kPidAt = kKindAt + 2;
constexpr std::size_t kSlotAt = kPidAt + 4;
constexpr std::size_t kMemoryAt = kSlotAt + 4;
static_assert(kMemoryAt + 8 == kHelloBytes);

bool is_kind(std::uint16_t number) noexcept {
  return number >= static_cast<std::uint16_t>(HelloKind::kOpenRing) &&
         number <= static_cast<std::uint16_t>(HelloKind::kCounters);
}

}  // namespace

std::array<std::byte, kHelloBytes> encode(const Hello& hello) noexcept {
  std::array<std::byte, kHelloBytes> message{};
  store_be32(message.data() + kMagicAt, kMagic);
  store_be16(message.data() + kVersionAt, kProtocolVersion);
  store_be16(message.data() + kKindAt, static_cast<std::uint16_t>(hello.kind));
  store_be32(message.data() + kPidAt, hello.pid);
  store_be32(message.data() + kSlotAt, hello.slot.value());
  store_be64(message.data() + kMemoryAt, hello.memory_bytes);
  return message;
}

std::optional<Hello> decode_hello(std::span<const std::byte> message) noexcept {
  if (message.size() < kHelloBytes) return std::nullopt;
  if (load_be32(message.data() + kMagicAt) != kMagic) return std::nullopt;
  if (load_be16(message.data() + kVersionAt) != kProtocolVersion) return std::nullopt;
  const auto kind = load_be16(message.data() + kKindAt);
  const auto slot = load_be32(message.data() + kSlotAt);
  if (!is_kind(kind) || slot > kLastSlot) return std::nullopt;
  return Hello{.kind = static_cast<HelloKind>(kind),
               .slot = Slot(static_cast<std::uint8_t>(slot)),
               .pid = load_be32(message.data() + kPidAt),
               .memory_bytes = load_be64(message.data() + kMemoryAt)};
}

}  // namespace verbena::host
