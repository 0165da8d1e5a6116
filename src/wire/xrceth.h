// XRC Extended Transport Header: reserved 8 | SRQ number 24, in requests of an XRC queue pair
// (InfiniBand Architecture volume 1, annex A14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct Xrceth {
  static constexpr std::size_t kSize = 4;

  std::uint32_t srqn = 0;  // 24 bits

  static constexpr Xrceth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Xrceth header;
    fields.skip(1);
    header.srqn = fields.u24();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.zeros(1);
    fields.u24(srqn);
  }

  friend constexpr bool operator==(const Xrceth&, const Xrceth&) noexcept = default;
};

}  // namespace verbena::wire
