// Selective Acknowledge Extended Transport Header: which packets behind the first missing one have arrived. Not of the
// InfiniBand Architecture: it follows an opcode that its section 9.2.1 leaves to manufacturers, and goes only to an end
// that has said that it understands it (engine/selective_mark.h).
//
//   bytes 0-15   one bit for each packet, the highest of byte 0 first: BTH.PSN + 1, BTH.PSN + 2, ...
//
// The PSN of the BTH is that of the first packet that is missing, or of the next one if none is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct SelectiveEth {
  static constexpr std::size_t kSize = 16;
  static constexpr std::uint32_t kPackets = 128;

  std::array<std::uint64_t, 2> words{};

  // Requires: index < kPackets. The packet is BTH.PSN + 1 + index.
  constexpr bool has(std::uint32_t index) const noexcept { return (words[index / 64] & bit(index)) != 0; }
  constexpr void add(std::uint32_t index) noexcept { words[index / 64] |= bit(index); }

  static constexpr SelectiveEth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    SelectiveEth header;
    for (std::uint64_t& word : header.words) word = fields.u64();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    for (const std::uint64_t word : words) fields.u64(word);
  }

  friend constexpr bool operator==(const SelectiveEth&, const SelectiveEth&) noexcept = default;

 private:
  static constexpr std::uint64_t bit(std::uint32_t index) noexcept { return 1ULL << (63 - index % 64); }
};

}  // namespace verbena::wire
