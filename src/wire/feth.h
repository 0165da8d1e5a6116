// Flush Extended Transport Header: reserved 26 | SEL 2 | PLT 4 (InfiniBand Architecture volume 1, annex A19).
//
// PLT says how far the data must have got: 0x1 globally visible, 0x2 persistent. SEL says which data: 0 the range of
// the RETH, 1 the whole memory region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct Feth {
  static constexpr std::size_t kSize = 4;

  std::uint8_t placement = 0;  // PLT, 4 bits
  std::uint8_t selection = 0;  // SEL, 2 bits

  static constexpr Feth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Feth header;
    const std::uint32_t word = fields.u32();
    header.placement = static_cast<std::uint8_t>(word & 0xf);
    header.selection = static_cast<std::uint8_t>((word >> 4) & 0x3);
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u32((std::uint32_t{selection & 0x3U} << 4) | (placement & 0xfU));
  }

  friend constexpr bool operator==(const Feth&, const Feth&) noexcept = default;
};

}  // namespace verbena::wire
