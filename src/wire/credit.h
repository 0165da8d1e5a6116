// End-to-end credits: how many receives a responder has free, in a code of five bits in the syndrome of an ACK
// (InfiniBand Architecture volume 1, section 9.7.5.2). The requester may send up to MSN + credits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace verbena::wire {

inline constexpr std::array<std::uint16_t, 31> kCredits{
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// The responder does not count; the requester is not limited. The only code allowed with a shared receive queue.
inline constexpr std::uint8_t kNoCreditLimit = 0x1f;

// Nothing where the code says that there is no limit. Only the lower five bits of `code` count.
constexpr std::optional<std::uint32_t> credits_of(std::uint8_t code) noexcept {
  const std::size_t index = code & 0x1f;
  if (index == kNoCreditLimit) return std::nullopt;
  return kCredits[index];
}

// The code of the largest number of credits that is not above `free_receives`.
constexpr std::uint8_t credit_code(std::uint32_t free_receives) noexcept {
  std::uint8_t code = 0;
  while (code + 1U < kCredits.size() && kCredits[code + 1U] <= free_receives) ++code;
  return code;
}

}  // namespace verbena::wire
