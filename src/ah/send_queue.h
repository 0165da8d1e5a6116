// What a sender writes on a hit, and how others know when it has finished reading.
//
// A look-up is a section: `activity` is odd inside it. Who unlinks something and wants to free it makes a grace period:
// a heavy fence, then, for each send queue, wait until it is outside or has moved on. The sender's own store to
// `activity` must not be overtaken by its loads. Where the kernel has membarrier(2) the heavy fence makes every running
// thread of the process do that at once, and the sender pays only a compiler barrier; elsewhere it pays a fence.
//
// Stamps: `stamps[slot]` is the position of the last work request that took the entry in that slot. After a grace
// period no new stamp can come for an unlinked entry, so `stamp > completed` decides whether something in flight names
// it. It errs on the safe side only: a retracted stamp may hold an entry until what is in flight has completed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <infiniband/verbs.h>

#include "ah/binding.h"
#include "ah/fence.h"
#include "ah/lookup_table.h"
#include "verbena/call_site.h"

namespace verbena::ah {

// Thread-safety: what a comment marks `owner` is written by the sender's thread only; all may be read by any.
// Ownership:     shared by the sender and the directory, which reads it after the sender is gone.
// Errors:        nullptr: not ready.
struct alignas(64) SendQueue {
  SendQueue(const LookupTable& look_up, std::size_t slots, std::uint8_t own_port, bool light_fence,
            const CallSite& made_at = {})
      : table(look_up),
        stamps(new std::atomic<std::uint64_t>[slots]()),
        port(own_port),
        light(light_fence),
        place(made_at) {}

  // Owner. No other order is needed than in the section's own comments: these lines are private to one writer.
  std::atomic<std::uint64_t> activity{0};
  std::atomic<std::uint64_t> position{0};   // work requests that took an address
  std::atomic<std::uint64_t> completed{0};  // release by the owner; partner: the acquire load in names()

  const LookupTable& table;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> stamps;
  const std::uint8_t port;
  std::atomic<bool> light;  // membarrier is there; falls once, where the kernel takes it away
  // The line ends here: a hit touches this one, and none of what follows.

  // Owner.
  alignas(64) std::atomic<std::uint64_t> retracted{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> misused{0};
  const CallSite place;  // that made it

  [[gnu::always_inline]] ibv_ah* next(const DestinationKey& key) noexcept {
    enter();
    const Binding* binding = table.find(key);
    ibv_ah* address = binding != nullptr ? take(*binding) : nullptr;
    leave();
    if (address == nullptr) [[unlikely]]
      add(misses, 1);
    return address;
  }

  ibv_ah* next(const Binding& binding) noexcept {
    enter();
    ibv_ah* address = take(binding);
    leave();
    if (address == nullptr) [[unlikely]]
      add(misses, 1);
    return address;
  }

  // Calls it inside a section: what it reads there of what is freed after a grace period stays until it returns.
  template <class Call>
  auto inside(Call call) noexcept {
    enter();
    auto result = call();
    leave();
    return result;
  }

  void retract(std::uint64_t count) noexcept;
  void complete_through(std::uint64_t reached) noexcept;
  std::uint64_t outstanding() const noexcept;

  // Whether something in flight may name the entry in that slot. After a grace period false is certain, before it is a
  // hint.
  bool names(std::uint32_t slot) const noexcept;
  // Returns when no section that was open at the call still is. Requires: a heavy fence before it.
  void wait_outside() const noexcept;

 private:
  // Adds to a counter that only the owner writes.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  void enter() noexcept {
    activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    light_fence(light.load(std::memory_order_relaxed));
  }

  // Release: partner of the acquire loads in wait_outside(), so that the stamp is seen.
  void leave() noexcept { activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  ibv_ah* take(const Binding& binding) noexcept {
    const Entry* entry = binding.entry.load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    const std::uint64_t at = position.load(std::memory_order_relaxed) + 1;
    position.store(at, std::memory_order_relaxed);
    stamps[entry->slot].store(at, std::memory_order_relaxed);
    return entry->address;
  }
};

}  // namespace verbena::ah
