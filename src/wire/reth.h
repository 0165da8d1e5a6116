// RDMA Extended Transport Header: virtual address 64 | R_Key 32 | DMA length 32
// (InfiniBand Architecture volume 1, section 9.3.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct Reth {
  static constexpr std::size_t kSize = 16;

  std::uint64_t address = 0;
  MemoryKey rkey{};
  std::uint32_t length = 0;  // bytes

  static constexpr Reth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Reth header;
    header.address = fields.u64();
    header.rkey = MemoryKey(fields.u32());
    header.length = fields.u32();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u64(address);
    fields.u32(rkey.value());
    fields.u32(length);
  }

  friend constexpr bool operator==(const Reth&, const Reth&) noexcept = default;
};

}  // namespace verbena::wire
