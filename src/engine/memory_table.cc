#include "engine/memory_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

namespace verbena::engine {
namespace {

// Keys have 24 bits of index; half of the space stays free.
constexpr std::uint32_t kMostRegions = 1U << 23;

std::uint32_t index_space(std::uint32_t max_regions, std::size_t chunk_size) {
  const std::uint32_t twice = std::min(max_regions, kMostRegions) * 2;
  return std::bit_ceil(std::max(twice, static_cast<std::uint32_t>(chunk_size)));
}

}  // namespace

MemoryTable::MemoryTable(std::uint32_t max_regions, KeySeed seed)
    : index_count_(index_space(max_regions, kChunkSize)),
      chunks_(index_count_ / kChunkSize),
      keys_(seed),
      max_regions_(std::min(max_regions, kMostRegions)) {}

Result<MemoryKey> MemoryTable::insert(MemoryRegion& region) {
  if (size_ >= max_regions_) return failure(ErrorCode::kExhausted, "all memory regions are in use", ENOMEM);
  while (true) {
    const std::uint64_t drawn = keys_.next();
    const auto index = static_cast<std::uint32_t>(drawn >> 32) & (index_count_ - 1);
    const auto key = MemoryKey((index << 8) | static_cast<std::uint8_t>(drawn));
    if (key.value() == 0) continue;  // what an SGE that was never filled in says
    Entry* entry = make_entry_of(index);
    if (entry == nullptr) return failure(ErrorCode::kExhausted, "no memory for the table of memory regions", ENOMEM);
    if (entry->load(std::memory_order_relaxed) != nullptr) continue;
    region.key = key;
    entry->store(&region, std::memory_order_release);  // partner: the acquire load in find()
    ++size_;
    return key;
  }
}

MemoryRegion* MemoryTable::remove(MemoryKey key) noexcept {
  Entry* entry = entry_of(key.value() >> 8);
  if (entry == nullptr) return nullptr;
  MemoryRegion* region = entry->load(std::memory_order_relaxed);
  if (region == nullptr || region->key != key) return nullptr;
  // Relaxed: readers that still see the region may use it until the caller's grace period is over.
  entry->store(nullptr, std::memory_order_relaxed);
  --size_;
  return region;
}

MemoryTable::Entry* MemoryTable::entry_of(std::uint32_t index) noexcept {
  if (index >= index_count_) return nullptr;
  Chunk* chunk = chunks_[index / kChunkSize].load(std::memory_order_relaxed);
  return chunk == nullptr ? nullptr : &(*chunk)[index % kChunkSize];
}

MemoryTable::Entry* MemoryTable::make_entry_of(std::uint32_t index) noexcept {
  if (Entry* entry = entry_of(index); entry != nullptr) return entry;
  try {
    owned_chunks_.push_back(std::make_unique<Chunk>());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  // Release: partner of the acquire load in find(); the chunk's empty entries are seen.
  chunks_[index / kChunkSize].store(owned_chunks_.back().get(), std::memory_order_release);
  return entry_of(index);
}

}  // namespace verbena::engine
