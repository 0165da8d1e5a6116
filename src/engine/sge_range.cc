#include "engine/sge_range.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace verbena::engine {

MemoryFault resolve_range(const MemoryTable& memory, const ProtectionDomain& domain, std::span<const Sge> sges,
                          std::uint64_t offset, std::size_t size, AccessFlags access, MemoryPieces& pieces) noexcept {
  pieces.count = 0;
  for (const Sge& sge : sges) {
    if (size == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    std::span<std::byte> whole;
    if (const MemoryFault fault = memory.resolve(domain, sge, access, whole); fault != MemoryFault::kNone) return fault;
    const auto part = whole.subspan(offset, std::min<std::size_t>(size, whole.size() - offset));
    offset = 0;
    size -= part.size();
    pieces.parts[pieces.count++] = {part.data(), part.size()};
  }
  return MemoryFault::kNone;
}

void store(std::span<const std::byte> bytes, std::span<std::byte> target) noexcept {
  if (bytes.empty()) return;
  std::memcpy(target.data(), bytes.data(), bytes.size() - 1);
  // Release: partner of the loads of a program that watches the last byte of its memory.
  std::atomic_ref(target[bytes.size() - 1]).store(bytes.back(), std::memory_order_release);
}

void store(std::span<const std::byte> bytes, const MemoryPieces& pieces) noexcept {
  for (const MemoryPiece& part : pieces.list()) {
    if (bytes.empty()) return;
    const auto now = bytes.first(std::min(bytes.size(), part.size));
    store(now, part.bytes());
    bytes = bytes.subspan(now.size());
  }
}

}  // namespace verbena::engine
