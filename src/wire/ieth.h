// Invalidate Extended Transport Header: the R_Key that the receiver is to invalidate
// (InfiniBand Architecture volume 1, section 9.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct Ieth {
  static constexpr std::size_t kSize = 4;

  MemoryKey rkey{};

  static constexpr Ieth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Ieth header;
    header.rkey = MemoryKey(fields.u32());
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u32(rkey.value());
  }

  friend constexpr bool operator==(const Ieth&, const Ieth&) noexcept = default;
};

}  // namespace verbena::wire
