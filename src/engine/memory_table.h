// From a key to the memory region, or the memory window, that it names.
//
// A key is index << 8 | variant. Both are drawn from a secret stream, so a peer can neither guess a key nor reuse the
// key of a region that is gone. The index space is twice the number of entries allowed, so a draw seldom meets a taken
// index. The table is an array of chunks that are made when first used and never moved; a look-up is two loads and a
// compare.
//
// Thread-safety: find(), resolve() and resolve_remote() from any thread, wait-free; the rest from one thread at a time.
// Ownership:     the caller owns regions and windows, and keeps a removed one until every look-up begun before has
// ended.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/strong.h"
#include "engine/key_stream.h"
#include "engine/memory_fault.h"
#include "engine/memory_region.h"
#include "engine/memory_window.h"
#include "engine/pager.h"
#include "engine/sge.h"
#include "verbena/result.h"

namespace verbena::engine {

class MemoryTable {
 public:
  // Room for `max_entries` regions and windows together. Without a pager no memory on demand is ever there.
  MemoryTable(std::uint32_t max_entries, KeySeed seed, Pager* pager = nullptr);
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // Gives `region` its key and publishes it. kExhausted with ENOMEM at the maximum or where no memory is left.
  Result<MemoryKey> insert(MemoryRegion& region);
  // The region, now unpublished, or nullptr where the key names none. Requires: no window is bound to it.
  MemoryRegion* remove(MemoryKey key) noexcept;

  // `region` takes the place and the key of `old`. Requires: `old` is in the table, and no window is bound to it.
  void replace(const MemoryRegion& old, MemoryRegion& region) noexcept;

  // The same for a window, which begins unbound.
  Result<MemoryKey> insert(MemoryWindow& window);
  // Unbinds it as well.
  void remove(MemoryWindow& window) noexcept;

  // A work request that binds a window, and one that invalidates its binding. kNone: done; else nothing changed.
  MemoryFault bind(const BindRequest& request) noexcept;
  MemoryFault invalidate(const ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept;

  std::uint32_t size() const noexcept { return size_; }

  const MemoryRegion* find(MemoryKey key) const noexcept {
    const MemoryRegion* region = at(key.value() >> 8);
    return region != nullptr && region->key == key ? region : nullptr;
  }

  // The bytes that `sge` stands for in a work request of `domain` that needs `access`. A zero-length SGE names nothing
  // and is never refused. `bytes` is set where the answer is kNone.
  MemoryFault resolve(const ProtectionDomain& domain, const Sge& sge, AccessFlags access,
                      std::span<std::byte>& bytes) const noexcept {
    if (sge.length == 0) {
      bytes = {};
      return MemoryFault::kNone;
    }
    const MemoryRegion* region = find(MemoryKey(sge.lkey));
    if (region == nullptr) return MemoryFault::kUnknownKey;
    if (region->domain != &domain) return MemoryFault::kOtherDomain;
    const std::uint64_t offset = sge.address - region->iova;  // wraps to a huge number below the region
    if (offset > region->length || sge.length > region->length - offset) return MemoryFault::kOutOfBounds;
    bytes = {reinterpret_cast<std::byte*>(region->address + offset), sge.length};
    if ((region->access & (access | kSpecialAccess)) == access) [[likely]]
      return MemoryFault::kNone;
    return resolve_special(*region, access, bytes);
  }

  // The bytes that a request from the network may touch: `length` bytes from `address` under `rkey`, by queue pair `by`
  // of `domain`; without `by`, no window of type 2. `access` with kCheckOnly: `bytes` may not be there to be touched.
  // Zero bytes name nothing and are never refused. `bytes` is set where the answer is kNone.
  MemoryFault resolve_remote(const ProtectionDomain& domain, MemoryKey rkey, std::uint64_t address,
                             std::uint32_t length, AccessFlags access, std::span<std::byte>& bytes,
                             Qpn by = {}) const noexcept {
    const MemoryFault fault = resolve(domain, {address, length, rkey.value()}, access, bytes);
    if (fault != MemoryFault::kUnknownKey) [[likely]]
      return fault;
    const MemoryWindow* window = find_window(rkey);
    return window == nullptr ? fault : resolve_in(*window, domain, rkey, {address, length, 0}, access, by, bytes);
  }

 private:
  static constexpr std::size_t kChunkSize = 512;
  using Entry = std::atomic<MemoryRegion*>;
  using Chunk = std::array<Entry, kChunkSize>;

  const MemoryRegion* at(std::uint32_t index) const noexcept {
    if (index >= index_count_) return nullptr;
    // Acquire: partner of the release stores in insert(); the chunk and the region are seen whole.
    const Chunk* chunk = chunks_[index / kChunkSize].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : (*chunk)[index % kChunkSize].load(std::memory_order_acquire);
  }
  // The window at the index of `key`, whatever its key is now.
  MemoryWindow* find_window(MemoryKey key) const noexcept {
    const MemoryRegion* entry = at(key.value() >> 8);
    return entry == nullptr ? nullptr : entry->window;
  }
  // The rights, and what `bytes` of the region needs before it can be touched.
  MemoryFault resolve_special(const MemoryRegion& region, AccessFlags access,
                              std::span<std::byte>& bytes) const noexcept;
  MemoryFault resolve_in(const MemoryWindow& window, const ProtectionDomain& domain, MemoryKey rkey, const Sge& piece,
                         AccessFlags access, Qpn by, std::span<std::byte>& bytes) const noexcept;
  MemoryFault page_in(AccessFlags access, std::span<const std::byte> bytes) const noexcept;
  // Draws keys until one's index is free; the entry is then the caller's to fill.
  Result<std::pair<MemoryKey, Entry*>> draw();
  Entry* entry_of(std::uint32_t index) noexcept;       // nullptr where the chunk is not there
  Entry* make_entry_of(std::uint32_t index) noexcept;  // nullptr where no memory is left

  const std::uint32_t index_count_;
  std::vector<std::atomic<Chunk*>> chunks_;
  std::vector<std::unique_ptr<Chunk>> owned_chunks_;  // the writer's
  KeyStream keys_;                                    // the writer's
  const std::uint32_t max_entries_;
  Pager* const pager_;
  std::uint32_t size_ = 0;
};

}  // namespace verbena::engine
