// Memory for many small objects that lie on lines of their own: slabs of 128, without a header between. An empty slab
// is given back. Address-sanitized builds see the use of an object that was destroyed, as they do with the heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace verbena::ah {

// Thread-safety: one thread at a time (under Core's mutex).
// Ownership:     owns the memory; what was made must be destroyed before the pool.
// Errors:        std::bad_alloc.
template <class T>
class SlabPool {
 public:
  SlabPool() = default;
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  template <class... Arguments>
  T* make(Arguments&&... arguments) {
    if (open_.empty()) add_slab();
    const Start start = *open_.begin();  // the lowest, so that the others become empty
    Slab& slab = slabs_.at(start);
    const std::size_t at = slab.free[--slab.free_count];
    if (slab.free_count == 0) slab.full = open_.extract(open_.begin());
    std::byte* place = slab.memory.get() + at * sizeof(T);
    hide(place, false);
    return new (place) T(std::forward<Arguments>(arguments)...);
  }

  void destroy(T* object) noexcept {
    std::destroy_at(object);
    auto* place = reinterpret_cast<std::byte*>(object);
    const auto found = std::prev(slabs_.upper_bound(place));
    Slab& slab = found->second;
    slab.free[slab.free_count++] = static_cast<std::uint8_t>((place - found->first) / std::ptrdiff_t{sizeof(T)});
    if (slab.free_count == kObjects) {
      open_.erase(found->first);
      slabs_.erase(found);
      return;
    }
    hide(place, true);
    if (slab.free_count == 1) open_.insert(std::move(slab.full));
  }

 private:
  static constexpr std::size_t kObjects = 128;
  using Start = const std::byte*;
  using Open = std::set<Start, std::less<>>;

  struct Free {
    void operator()(std::byte* memory) const noexcept {
      for (std::size_t i = 0; i < kObjects; ++i) hide(memory + i * sizeof(T), false);
      ::operator delete (memory, std::align_val_t{alignof(T)});
    }
  };

  struct Slab {
    std::unique_ptr<std::byte, Free> memory;
    std::array<std::uint8_t, kObjects> free{};  // places, a stack
    std::size_t free_count = 0;
    typename Open::node_type full{};  // its place in open_, while it has no room: to be put back without allocating
  };

  static void hide([[maybe_unused]] std::byte* place, [[maybe_unused]] bool hidden) noexcept {
#if defined(__SANITIZE_ADDRESS__)
    if (hidden) {
      ASAN_POISON_MEMORY_REGION(place, sizeof(T));
    } else {
      ASAN_UNPOISON_MEMORY_REGION(place, sizeof(T));
    }
#endif
  }

  void add_slab() {
    Slab slab;
    slab.memory.reset(static_cast<std::byte*>(::operator new (kObjects * sizeof(T), std::align_val_t{alignof(T)})));
    Start start = slab.memory.get();
    for (std::size_t i = 0; i < kObjects; ++i) {
      slab.free[i] = static_cast<std::uint8_t>(kObjects - 1 - i);
      hide(slab.memory.get() + i * sizeof(T), true);
    }
    slab.free_count = kObjects;
    Open place{start};
    slabs_.emplace(start, std::move(slab));
    open_.merge(place);
  }

  std::map<Start, Slab, std::less<>> slabs_;
  Open open_;  // those with room
};

}  // namespace verbena::ah
