// Big-endian loads and stores at a byte address; the one place where wire order meets host order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena {

// Reads the first `Width` bytes at `at` as one big-endian number.
template <std::size_t Width>
constexpr std::uint64_t load_be(const std::byte* at) noexcept {
  static_assert(Width >= 1 && Width <= 8);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < Width; ++i) value = (value << 8) | std::to_integer<std::uint64_t>(at[i]);
  return value;
}

template <std::size_t Width>
constexpr void store_be(std::byte* at, std::uint64_t value) noexcept {
  static_assert(Width >= 1 && Width <= 8);
  for (std::size_t i = 0; i < Width; ++i) at[i] = static_cast<std::byte>(value >> (8 * (Width - 1 - i)));
}

constexpr std::uint8_t load_be8(const std::byte* at) noexcept {
  return static_cast<std::uint8_t>(load_be<1>(at));
}
constexpr std::uint16_t load_be16(const std::byte* at) noexcept {
  return static_cast<std::uint16_t>(load_be<2>(at));
}
constexpr std::uint32_t load_be24(const std::byte* at) noexcept {
  return static_cast<std::uint32_t>(load_be<3>(at));
}
constexpr std::uint32_t load_be32(const std::byte* at) noexcept {
  return static_cast<std::uint32_t>(load_be<4>(at));
}
constexpr std::uint64_t load_be64(const std::byte* at) noexcept {
  return load_be<8>(at);
}

constexpr void store_be8(std::byte* at, std::uint8_t value) noexcept {
  store_be<1>(at, value);
}
constexpr void store_be16(std::byte* at, std::uint16_t value) noexcept {
  store_be<2>(at, value);
}
constexpr void store_be24(std::byte* at, std::uint32_t value) noexcept {
  store_be<3>(at, value);
}
constexpr void store_be32(std::byte* at, std::uint32_t value) noexcept {
  store_be<4>(at, value);
}
constexpr void store_be64(std::byte* at, std::uint64_t value) noexcept {
  store_be<8>(at, value);
}

}  // namespace verbena
