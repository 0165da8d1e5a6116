// What applications write themselves to find an address handle again, for the benchmarks to compare with.
//
// Both give a raw pointer: they count no holders, note nothing about work in flight, and evict nothing, so they do less
// than the directory does. Neither is asked to build its key: the attributes are ready, as in a program that keeps
// them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/destination_key.h"

namespace verbena::bench {

// The address vector with no padding left unset, as four words: compared and hashed whole.
struct AttributeKey {
  std::array<std::uint64_t, 4> words{};

  static AttributeKey of(const ibv_ah_attr& attributes) noexcept {
    AttributeKey key;
    static_assert(sizeof attributes == sizeof key.words);
    std::memcpy(key.words.data(), &attributes, sizeof attributes);
    return key;
  }
  friend bool operator==(const AttributeKey& a, const AttributeKey& b) noexcept { return a.words == b.words; }
};

struct AttributeHash {
  std::size_t operator()(const AttributeKey& key) const noexcept {
    return static_cast<std::size_t>(
        ah::fold_multiply(key.words[0] ^ 0xa0761d6478bd642fULL, key.words[1] ^ 0xe7037ed1a0b428dbULL) ^
        ah::fold_multiply(key.words[2] ^ 0x8ebc6af09c88c6e3ULL, key.words[3] ^ 0x589965cc75374cc3ULL));
  }
};

class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.test_and_set(std::memory_order_acquire)) {
      while (taken_.test(std::memory_order_relaxed)) {
      }
    }
  }
  void unlock() noexcept { taken_.clear(std::memory_order_release); }

 private:
  alignas(64) std::atomic_flag taken_;
};

// Open addressing at half load, one cache line a place, one spinlock for the table: the way of UCX's ib device.
class SpinLockedTable {
 public:
  explicit SpinLockedTable(std::size_t most) {
    std::size_t places = 2;
    while (places < 2 * most) places *= 2;
    places_.resize(places);
  }

  void insert(const AttributeKey& key, ibv_ah* address) {
    const std::lock_guard<SpinLock> lock(lock_);
    place_of(key) = {key, address};
  }
  // nullptr where it is not there.
  ibv_ah* find(const AttributeKey& key) noexcept {
    const std::lock_guard<SpinLock> lock(lock_);
    return place_of(key).address;
  }

 private:
  struct alignas(64) Place {
    AttributeKey key{};
    ibv_ah* address = nullptr;
  };

  Place& place_of(const AttributeKey& key) noexcept {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = AttributeHash{}(key)&mask;
    while (places_[at].address != nullptr && !(places_[at].key == key)) at = (at + 1) & mask;
    return places_[at];
  }

  SpinLock lock_;
  std::vector<Place> places_;
};

// The standard library's own.
class SharedMutexMap {
 public:
  void insert(const AttributeKey& key, ibv_ah* address) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    map_[key] = address;
  }
  ibv_ah* find(const AttributeKey& key) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = map_.find(key);
    return found == map_.end() ? nullptr : found->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<AttributeKey, ibv_ah*, AttributeHash> map_;
};

}  // namespace verbena::bench
