// Destination to binding: an open-addressed table that senders read without a lock while one writer changes it.
//
// A reader sees a slot as empty, as a binding, or as the grave of one. The writer publishes a binding with one store,
// and grows by building a new array and publishing that. What it takes out (bindings, old arrays) may still be under a
// reader's eyes: it is freed after a grace period (send_queue.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ah/binding.h"

namespace verbena::ah {

// Thread-safety: find() by any thread inside a section; the rest by one thread at a time (under Core's mutex).
// Ownership:     owns its arrays, not the bindings.
// Errors:        none.
class LookupTable {
 public:
  struct Array {
    explicit Array(std::size_t capacity) : mask(capacity - 1), slots(new std::atomic<Binding*>[capacity]()) {}
    const std::size_t mask;
    const std::unique_ptr<std::atomic<Binding*>[]> slots;
  };

  explicit LookupTable(std::uint64_t seed);
  LookupTable(const LookupTable&) = delete;
  LookupTable& operator=(const LookupTable&) = delete;
  ~LookupTable();

  // nullptr where it is not there. Acquire loads: partner of the release stores in insert() and rebuild().
  Binding* find(const DestinationKey& key) const noexcept {
    const Array* array = array_.load(std::memory_order_acquire);
    for (std::size_t at = hash_of(key, seed_);; ++at) {
      Binding* binding = array->slots[at & array->mask].load(std::memory_order_acquire);
      if (binding == nullptr || binding->key == key) return binding;
    }
  }

  // Requires: its key is not there.
  void insert(Binding* binding);
  // Requires: it is there.
  void erase(const Binding* binding);
  std::size_t size() const noexcept { return size_; }

  // Must not change the table.
  template <class Visit>
  void for_each(Visit visit) const {
    const Array* array = array_.load(std::memory_order_relaxed);
    for (std::size_t at = 0; at <= array->mask; ++at) {
      Binding* binding = array->slots[at].load(std::memory_order_relaxed);
      if (binding != nullptr && !is_grave(binding)) visit(*binding);
    }
  }

  // Arrays that were replaced since the last call; to be freed after a grace period.
  bool has_retired() const noexcept { return !retired_.empty(); }
  std::vector<std::unique_ptr<Array>> take_retired() noexcept { return std::move(retired_); }

 private:
  static bool is_grave(const Binding* binding) noexcept;
  void rebuild(std::size_t capacity);

  const std::uint64_t seed_;
  std::atomic<Array*> array_;
  std::size_t size_ = 0;  // bindings
  std::size_t used_ = 0;  // bindings and graves
  std::vector<std::unique_ptr<Array>> retired_;
};

}  // namespace verbena::ah
