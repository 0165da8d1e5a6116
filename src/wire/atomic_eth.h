// Atomic Extended Transport Header: virtual address 64 | R_Key 32 | swap or add 64 | compare 64
// (InfiniBand Architecture volume 1, section 9.3.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct AtomicEth {
  static constexpr std::size_t kSize = 28;

  std::uint64_t address = 0;
  MemoryKey rkey{};
  std::uint64_t swap_or_add = 0;
  std::uint64_t compare = 0;

  static constexpr AtomicEth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    AtomicEth header;
    header.address = fields.u64();
    header.rkey = MemoryKey(fields.u32());
    header.swap_or_add = fields.u64();
    header.compare = fields.u64();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u64(address);
    fields.u32(rkey.value());
    fields.u64(swap_or_add);
    fields.u64(compare);
  }

  friend constexpr bool operator==(const AtomicEth&, const AtomicEth&) noexcept = default;
};

}  // namespace verbena::wire
