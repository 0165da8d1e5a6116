// From a number that packets carry to the object of this process that has it. QPNs and SRQNs are built alike: the slot
// of the process above, an index below.
//
// One array of pointers for each slot the process holds; a look-up is two loads. A freed number is used again as late
// as possible, so that packets for a destroyed object do not reach its successor.
//
// Thread-safety: find() from any thread inside an RCU read section; the rest any thread (a mutex).
// Ownership:     none; who removes an object frees it only after a grace period.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/qpn.h"

namespace verbena::device {

class NumberTable {
 public:
  // Numbers below this are kept free in each slot.
  static constexpr std::uint16_t kFirstIndex = 16;

  void* find(Qpn qpn) const noexcept {
    // Acquire: partner of the release stores in add_slot() and publish().
    const Numbers* numbers = slots_[qpn.slot().value()].load(std::memory_order_acquire);
    return numbers == nullptr ? nullptr : numbers->entries[qpn.index()].load(std::memory_order_acquire);
  }

  void add_slot(Slot slot);
  bool has_slots() const;
  // A free number, taken but not yet found by find(); nothing where all slots are full.
  bool reserve(Qpn& qpn) noexcept;
  void publish(Qpn qpn, void* object) noexcept;
  // find() no longer finds it; the number stays taken.
  void unpublish(Qpn qpn) noexcept;
  void release(Qpn qpn) noexcept;

 private:
  struct Numbers {
    explicit Numbers(Slot of) : slot(of) {}
    Slot slot;
    std::array<std::atomic<void*>, Qpn::kPerSlot> entries{};
    std::vector<bool> taken = std::vector<bool>(Qpn::kPerSlot);  // guarded by mutex_
    std::uint32_t next = kFirstIndex;                            // guarded by mutex_
    std::uint32_t count = 0;                                     // guarded by mutex_
  };

  std::array<std::atomic<Numbers*>, 256> slots_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Numbers>> owned_;  // guarded by mutex_
};

}  // namespace verbena::device
