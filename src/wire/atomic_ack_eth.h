// Atomic Acknowledge Extended Transport Header: the value that memory held before, 64 bits
// (InfiniBand Architecture volume 1, section 9.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct AtomicAckEth {
  static constexpr std::size_t kSize = 8;

  std::uint64_t original = 0;

  static constexpr AtomicAckEth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    AtomicAckEth header;
    header.original = fields.u64();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u64(original);
  }

  friend constexpr bool operator==(const AtomicAckEth&, const AtomicAckEth&) noexcept = default;
};

}  // namespace verbena::wire
