// An integer with a meaning of its own: Qpn, Qkey and Pkey do not mix.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace verbena {

template <class Tag, std::unsigned_integral Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() noexcept = default;
  constexpr explicit Strong(Rep value) noexcept : value_(value) {}
  constexpr Rep value() const noexcept { return value_; }
  friend constexpr auto operator<=>(Strong, Strong) noexcept = default;

 private:
  Rep value_{};
};

using Qkey = Strong<struct QkeyTag, std::uint32_t>;
using Pkey = Strong<struct PkeyTag, std::uint16_t>;
// A key of a memory region or window, local or remote: index << 8 | variant.
using MemoryKey = Strong<struct MemoryKeyTag, std::uint32_t>;
// One process' share of the QPN space of a network namespace: the upper eight bits of its QPNs. 0 is for management.
using Slot = Strong<struct SlotTag, std::uint8_t>;

}  // namespace verbena

template <class Tag, class Rep>
struct std::hash<verbena::Strong<Tag, Rep>> {
  std::size_t operator()(verbena::Strong<Tag, Rep> strong) const noexcept { return std::hash<Rep>{}(strong.value()); }
};
