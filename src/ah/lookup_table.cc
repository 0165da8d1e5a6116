#include "ah/lookup_table.h"

#include <utility>

namespace verbena::ah {

namespace {

constexpr std::size_t kSmallest = 64;

// A key that no destination has: the upper bits of its last words are never set.
DestinationKey impossible_key() {
  DestinationKey key;
  key.words.fill(~std::uint64_t{0});
  return key;
}

Binding& grave() {
  static Binding* const instance = new Binding(impossible_key());
  return *instance;
}

// Half full at most, so that a look-up meets an empty slot soon; a third at most when it is built, so that it is not
// built again at once.
std::size_t capacity_for(std::size_t bindings) {
  std::size_t capacity = kSmallest;
  while (capacity < 3 * bindings) capacity *= 2;
  return capacity;
}

}  // namespace

LookupTable::LookupTable(std::uint64_t seed) : seed_(seed), array_(nullptr) {
  grave();  // made here, where that may fail
  array_.store(new Array(kSmallest), std::memory_order_relaxed);
}

LookupTable::~LookupTable() {
  delete array_.load(std::memory_order_relaxed);
}

bool LookupTable::is_grave(const Binding* binding) noexcept {
  return binding == &grave();
}

void LookupTable::insert(Binding* binding) {
  if (const Array* array = array_.load(std::memory_order_relaxed); 2 * (used_ + 1) > array->mask + 1) {
    rebuild(capacity_for(size_ + 1));
  }
  const Array* array = array_.load(std::memory_order_relaxed);
  std::size_t at = hash_of(binding->key, seed_);
  for (;; ++at) {
    Binding* there = array->slots[at & array->mask].load(std::memory_order_relaxed);
    if (there == nullptr) ++used_;
    if (there == nullptr || is_grave(there)) break;
  }
  array->slots[at & array->mask].store(binding, std::memory_order_release);
  ++size_;
}

void LookupTable::erase(const Binding* binding) {
  const Array* array = array_.load(std::memory_order_relaxed);
  std::size_t at = hash_of(binding->key, seed_);
  while (array->slots[at & array->mask].load(std::memory_order_relaxed) != binding) ++at;
  array->slots[at & array->mask].store(&grave(), std::memory_order_release);
  --size_;
}

void LookupTable::rebuild(std::size_t capacity) {
  auto fresh = std::make_unique<Array>(capacity);
  retired_.reserve(retired_.size() + 1);  // what follows cannot fail
  for_each([&](Binding& binding) {
    std::size_t at = hash_of(binding.key, seed_);
    while (fresh->slots[at & fresh->mask].load(std::memory_order_relaxed) != nullptr) ++at;
    fresh->slots[at & fresh->mask].store(&binding, std::memory_order_relaxed);
  });
  used_ = size_;
  retired_.emplace_back(array_.exchange(fresh.release(), std::memory_order_acq_rel));
}

}  // namespace verbena::ah
