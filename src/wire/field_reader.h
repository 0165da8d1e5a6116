// Reads the fields of a header one after the other, so that no offset is ever typed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"

namespace verbena::wire {

// Walks over bytes that the caller has already found to be long enough.
class FieldReader {
 public:
  constexpr explicit FieldReader(const std::byte* at) noexcept : at_(at) {}

  constexpr std::uint8_t u8() noexcept { return load_be8(step(1)); }
  constexpr std::uint16_t u16() noexcept { return load_be16(step(2)); }
  constexpr std::uint32_t u24() noexcept { return load_be24(step(3)); }
  constexpr std::uint32_t u32() noexcept { return load_be32(step(4)); }
  constexpr std::uint64_t u64() noexcept { return load_be64(step(8)); }
  constexpr void skip(std::size_t count) noexcept { step(count); }

 private:
  constexpr const std::byte* step(std::size_t count) noexcept {
    const std::byte* const here = at_;
    at_ += count;
    return here;
  }

  const std::byte* at_;
};

}  // namespace verbena::wire
