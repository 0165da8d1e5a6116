// Writes the fields of a header one after the other, so that no offset is ever typed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"

namespace verbena::wire {

// Walks over room that the caller has already found to be large enough.
class FieldWriter {
 public:
  constexpr explicit FieldWriter(std::byte* at) noexcept : at_(at) {}

  constexpr void u8(std::uint8_t value) noexcept { store_be8(step(1), value); }
  constexpr void u16(std::uint16_t value) noexcept { store_be16(step(2), value); }
  constexpr void u24(std::uint32_t value) noexcept { store_be24(step(3), value); }
  constexpr void u32(std::uint32_t value) noexcept { store_be32(step(4), value); }
  constexpr void u64(std::uint64_t value) noexcept { store_be64(step(8), value); }
  constexpr void zeros(std::size_t count) noexcept {
    for (std::byte* at = step(count); at != at_; ++at) *at = std::byte{0};
  }

 private:
  constexpr std::byte* step(std::size_t count) noexcept {
    std::byte* const here = at_;
    at_ += count;
    return here;
  }

  std::byte* at_;
};

}  // namespace verbena::wire
