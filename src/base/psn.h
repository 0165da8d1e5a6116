// A packet sequence number: 24 bits, compared on the circle (InfiniBand Architecture volume 1, section 9.7.1).
#pragma once

#include <cstdint>

namespace verbena {

class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xffffff;

  constexpr Psn() noexcept = default;
  constexpr explicit Psn(std::uint32_t value) noexcept : value_(value & kMask) {}
  constexpr std::uint32_t value() const noexcept { return value_; }

  friend constexpr bool operator==(Psn, Psn) noexcept = default;
  friend constexpr Psn operator+(Psn psn, std::uint32_t count) noexcept { return Psn(psn.value_ + count); }
  constexpr Psn& operator++() noexcept { return *this = *this + 1; }

  // How far `this` is ahead of `other`: negative where it is behind, in [-2^23, 2^23).
  constexpr std::int32_t distance_from(Psn other) const noexcept {
    const std::uint32_t difference = (value_ - other.value_) & kMask;
    return difference < 0x800000 ? static_cast<std::int32_t>(difference)
                                 : static_cast<std::int32_t>(difference) - 0x1000000;
  }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace verbena
