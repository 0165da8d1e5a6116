// Local memory as a list of SGEs names it, addressed by offset: what a packet in the middle of a message reads or
// fills.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/limits.h"
#include "engine/memory_table.h"
#include "engine/sge.h"

namespace verbena::engine {

// Has no initial value: a span would be set to nothing, thirty-two times a packet.
struct MemoryPiece {
  std::byte* data;
  std::size_t size;

  std::span<std::byte> bytes() const noexcept { return {data, size}; }
};

struct MemoryPieces {
  std::array<MemoryPiece, kMaxSge> parts;
  std::size_t count;

  std::span<const MemoryPiece> list() const noexcept { return std::span(parts).first(count); }
};

// Sets `pieces` to the `size` bytes that begin `offset` bytes into the list. Requires: the list names as many.
MemoryFault resolve_range(const MemoryTable& memory, const ProtectionDomain& domain, std::span<const Sge> sges,
                          std::uint64_t offset, std::size_t size, AccessFlags access, MemoryPieces& pieces) noexcept;

// Copies `bytes` into the pieces. The last byte is stored last: a program may be watching it to see the others.
// Requires: they have room.
void store(std::span<const std::byte> bytes, const MemoryPieces& pieces) noexcept;
void store(std::span<const std::byte> bytes, std::span<std::byte> target) noexcept;

}  // namespace verbena::engine
