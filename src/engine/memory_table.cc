#include "engine/memory_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

namespace verbena::engine {
namespace {

// Keys have 24 bits of index; half of the space stays free.
constexpr std::uint32_t kMostEntries = 1U << 23;

constexpr AccessFlags kWriteAccess = kLocalWrite | kRemoteWrite | kRemoteAtomic;

std::uint32_t index_space(std::uint32_t max_entries, std::size_t chunk_size) {
  const std::uint32_t twice = std::min(max_entries, kMostEntries) * 2;
  return std::bit_ceil(std::max(twice, static_cast<std::uint32_t>(chunk_size)));
}

}  // namespace

MemoryTable::MemoryTable(std::uint32_t max_entries, KeySeed seed, Pager* pager)
    : index_count_(index_space(max_entries, kChunkSize)),
      chunks_(index_count_ / kChunkSize),
      keys_(seed),
      max_entries_(std::min(max_entries, kMostEntries)),
      pager_(pager) {}

Result<std::pair<MemoryKey, MemoryTable::Entry*>> MemoryTable::draw() {
  if (size_ >= max_entries_) return failure(ErrorCode::kExhausted, "all memory regions are in use", ENOMEM);
  while (true) {
    const std::uint64_t drawn = keys_.next();
    const auto index = static_cast<std::uint32_t>(drawn >> 32) & (index_count_ - 1);
    const auto key = MemoryKey((index << 8) | static_cast<std::uint8_t>(drawn));
    if (key.value() == 0) continue;  // what an SGE that was never filled in says
    Entry* entry = make_entry_of(index);
    if (entry == nullptr) return failure(ErrorCode::kExhausted, "no memory for the table of memory regions", ENOMEM);
    if (entry->load(std::memory_order_relaxed) == nullptr) return std::pair{key, entry};
  }
}

Result<MemoryKey> MemoryTable::insert(MemoryRegion& region) {
  const auto drawn = draw();
  if (!drawn) return tl::make_unexpected(drawn.error());
  region.key = drawn->first;
  drawn->second->store(&region, std::memory_order_release);  // partner: the acquire load in at()
  ++size_;
  return region.key;
}

Result<MemoryKey> MemoryTable::insert(MemoryWindow& window) {
  const auto drawn = draw();
  if (!drawn) return tl::make_unexpected(drawn.error());
  const MemoryKey key = drawn->first;
  // A key whose index is another: no look-up of a region ends here.
  window.entry_.key = MemoryKey(key.value() ^ 0x100);
  window.write({key.value(), 0, 0, 0, 0, 0});
  drawn->second->store(&window.entry_, std::memory_order_release);  // partner: the acquire load in at()
  ++size_;
  return key;
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

void MemoryTable::replace(const MemoryRegion& old, MemoryRegion& region) noexcept {
  region.key = old.key;
  entry_of(old.key.value() >> 8)->store(&region, std::memory_order_release);  // partner: the acquire load in at()
}

void MemoryTable::remove(MemoryWindow& window) noexcept {
  window.unbind();
  Entry* entry = entry_of(window.key().value() >> 8);
  if (entry == nullptr || entry->load(std::memory_order_relaxed) != &window.entry_) return;
  entry->store(nullptr, std::memory_order_relaxed);  // as in remove() of a region
  --size_;
}

MemoryFault MemoryTable::bind(const BindRequest& request) noexcept {
  Entry* entry = entry_of(request.window.value() >> 8);
  MemoryRegion* found = entry == nullptr ? nullptr : entry->load(std::memory_order_relaxed);
  if (found == nullptr || found->window == nullptr) return MemoryFault::kUnknownKey;
  auto* region = const_cast<MemoryRegion*>(find(request.region));
  return found->window->bind(request, region);
}

MemoryFault MemoryTable::invalidate(const ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept {
  MemoryWindow* window = find_window(key);
  return window == nullptr ? MemoryFault::kUnknownKey : window->invalidate(domain, key, by);
}

MemoryFault MemoryTable::resolve_special(const MemoryRegion& region, AccessFlags access,
                                         std::span<std::byte>& bytes) const noexcept {
  const bool checks_only = (access & kCheckOnly) != 0;
  access &= ~kCheckOnly;
  if ((region.access & access) != access) return MemoryFault::kNoAccess;
  if (checks_only) return MemoryFault::kNone;
  if ((region.access & kNull) == 0) return page_in(access, bytes);
  const std::uint64_t at = (access & kWriteAccess) != 0 ? region.sink : region.address;
  bytes = {reinterpret_cast<std::byte*>(at), bytes.size()};
  return MemoryFault::kNone;
}

MemoryFault MemoryTable::resolve_in(const MemoryWindow& window, const ProtectionDomain& domain, MemoryKey rkey,
                                    const Sge& piece, AccessFlags access, Qpn by,
                                    std::span<std::byte>& bytes) const noexcept {
  bool on_demand = false;
  const bool checks_only = (access & kCheckOnly) != 0;
  access &= ~kCheckOnly;
  const MemoryFault fault =
      window.resolve(domain, rkey, piece.address, piece.length, access, by, {.bytes = bytes, .on_demand = on_demand});
  return fault == MemoryFault::kNone && on_demand && !checks_only ? page_in(access, bytes) : fault;
}

MemoryFault MemoryTable::page_in(AccessFlags access, std::span<const std::byte> bytes) const noexcept {
  const bool there = pager_ != nullptr && pager_->page_in(reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size(),
                                                          (access & kWriteAccess) != 0);
  return there ? MemoryFault::kNone : MemoryFault::kNotMapped;
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
