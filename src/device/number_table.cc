#include "device/number_table.h"

namespace verbena::device {

void NumberTable::add_slot(Slot slot) {
  auto numbers = std::make_unique<Numbers>(slot);
  if (kMulticastQpn.slot() == slot) {  // the number that means "every member of the group"
    numbers->taken[kMulticastQpn.index()] = true;
    numbers->count = 1;
  }
  const std::lock_guard guard(mutex_);
  slots_[slot.value()].store(numbers.get(), std::memory_order_release);
  owned_.push_back(std::move(numbers));
}

bool NumberTable::has_slots() const {
  const std::lock_guard guard(mutex_);
  return !owned_.empty();
}

bool NumberTable::reserve(Qpn& qpn) noexcept {
  const std::lock_guard guard(mutex_);
  for (const auto& numbers : owned_) {
    if (numbers->count >= Qpn::kPerSlot - kFirstIndex) continue;
    while (numbers->taken[numbers->next])
      numbers->next = numbers->next + 1 == Qpn::kPerSlot ? kFirstIndex : numbers->next + 1;
    qpn = Qpn(numbers->slot, static_cast<std::uint16_t>(numbers->next));
    numbers->taken[numbers->next] = true;
    numbers->next = numbers->next + 1 == Qpn::kPerSlot ? kFirstIndex : numbers->next + 1;
    ++numbers->count;
    return true;
  }
  return false;
}

void NumberTable::publish(Qpn qpn, void* object) noexcept {
  auto* numbers = slots_[qpn.slot().value()].load(std::memory_order_relaxed);
  numbers->entries[qpn.index()].store(object, std::memory_order_release);
}

void NumberTable::unpublish(Qpn qpn) noexcept {
  auto* numbers = slots_[qpn.slot().value()].load(std::memory_order_relaxed);
  numbers->entries[qpn.index()].store(nullptr, std::memory_order_relaxed);
}

void NumberTable::release(Qpn qpn) noexcept {
  const std::lock_guard guard(mutex_);
  auto* numbers = slots_[qpn.slot().value()].load(std::memory_order_relaxed);
  numbers->taken[qpn.index()] = false;
  --numbers->count;
}

}  // namespace verbena::device
