// Immediate data: four bytes that go from the sender's work request to the receiver's completion as they are
// (InfiniBand Architecture volume 1, section 9.3).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace verbena::wire {

struct ImmDt {
  static constexpr std::size_t kSize = 4;

  std::uint32_t network_order = 0;  // as ibv_send_wr and ibv_wc hold it: the bytes in memory are the bytes on the wire

  static constexpr ImmDt decode(std::span<const std::byte, kSize> bytes) noexcept {
    std::array<std::byte, kSize> copy{};
    std::copy(bytes.begin(), bytes.end(), copy.begin());
    return {std::bit_cast<std::uint32_t>(copy)};
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    const auto copy = std::bit_cast<std::array<std::byte, kSize>>(network_order);
    std::copy(copy.begin(), copy.end(), out.begin());
  }

  friend constexpr bool operator==(const ImmDt&, const ImmDt&) noexcept = default;
};

}  // namespace verbena::wire
