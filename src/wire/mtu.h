// The path MTUs of InfiniBand: how much payload one packet may carry. The numbers are those of ibv_mtu.
#pragma once

#include <cstdint>
#include <optional>

namespace verbena::wire {

enum class Mtu : std::uint8_t { k256 = 1, k512, k1024, k2048, k4096 };

// What rxe and Verbena leave for IP, UDP and the largest transport headers.
inline constexpr std::uint32_t kMtuOverhead = 80;

constexpr std::uint32_t byte_count(Mtu mtu) noexcept {
  return 128U << static_cast<unsigned>(mtu);
}

// Nothing where no MTU has exactly that size.
constexpr std::optional<Mtu> mtu_of_bytes(std::uint32_t bytes) noexcept {
  for (const Mtu mtu : {Mtu::k256, Mtu::k512, Mtu::k1024, Mtu::k2048, Mtu::k4096}) {
    if (byte_count(mtu) == bytes) return mtu;
  }
  return std::nullopt;
}

// Nothing where `number` is not one of ibv_mtu.
constexpr std::optional<Mtu> mtu_of_number(std::uint32_t number) noexcept {
  if (number < static_cast<std::uint32_t>(Mtu::k256) || number > static_cast<std::uint32_t>(Mtu::k4096)) {
    return std::nullopt;
  }
  return static_cast<Mtu>(number);
}

// The largest that a network interface carries: 1500 gives 1024, 4176 and more give 4096. Never below 256.
constexpr Mtu mtu_of_interface(std::uint32_t interface_mtu) noexcept {
  for (const Mtu mtu : {Mtu::k4096, Mtu::k2048, Mtu::k1024, Mtu::k512}) {
    if (interface_mtu >= byte_count(mtu) + kMtuOverhead) return mtu;
  }
  return Mtu::k256;
}

}  // namespace verbena::wire
