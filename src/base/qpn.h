// A queue pair number: 24 bits, of which the upper eight name the process (its slot) on the receiving host.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/strong.h"

namespace verbena {

class Qpn {
 public:
  static constexpr std::uint32_t kMask = 0xffffff;
  static constexpr std::uint32_t kPerSlot = 0x10000;

  constexpr Qpn() noexcept = default;
  constexpr explicit Qpn(std::uint32_t value) noexcept : value_(value & kMask) {}
  constexpr Qpn(Slot slot, std::uint16_t index) noexcept : value_((std::uint32_t{slot.value()} << 16) | index) {}

  constexpr std::uint32_t value() const noexcept { return value_; }
  constexpr Slot slot() const noexcept { return Slot(static_cast<std::uint8_t>(value_ >> 16)); }
  constexpr std::uint16_t index() const noexcept { return static_cast<std::uint16_t>(value_); }
  constexpr bool is_multicast() const noexcept { return value_ == kMask; }

  friend constexpr auto operator<=>(Qpn, Qpn) noexcept = default;

 private:
  std::uint32_t value_ = 0;
};

inline constexpr Qpn kMulticastQpn{Qpn::kMask};

}  // namespace verbena

template <>
struct std::hash<verbena::Qpn> {
  std::size_t operator()(verbena::Qpn qpn) const noexcept { return std::hash<std::uint32_t>{}(qpn.value()); }
};
