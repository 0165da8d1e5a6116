// What an entry does not keep: it follows from the destination that it is for, from its path and from its slot.
#include <algorithm>

#include "ah/core.h"

namespace verbena::ah {

// Those that share an entry agree in what the device was told; what they asked for beyond that is their own.
Destination Core::asked(const Entry& entry) const {
  Destination destination =
      destination_of(entry.first_binding != nullptr ? entry.first_binding->key : parted_.at(&entry));
  destination.source = {};
  destination.netdev = 0;
  return destination;
}

AhKey Core::ah_key_of(const Entry& entry) const {
  return ah::key_of(asked(entry), entry.path->source, facts_);
}

NextHop Core::hop_of(const Entry& entry) const {
  return ah::hop_of(asked(entry), *entry.path);
}

Entry* Core::find_entry(const AhKey& key) const {
  std::uint32_t slot = index_[AhKeyHash{}(key) & (index_.size() - 1)];
  while (slot != kNoSlot && ah_key_of(*by_slot_[slot]) != key) slot = by_slot_[slot]->next_in_index;
  return slot == kNoSlot ? nullptr : by_slot_[slot];
}

// Up to an eighth more than max_age, by the slot, so that those made at one moment are not made anew at one.
std::int64_t Core::due_ns_of(const Entry& entry) const {
  if (entry.aged) return kNever;
  std::int64_t due = kNever;
  if (const std::int64_t age = options_.max_age.count(); age > 0) {
    constexpr std::int64_t kSpread = 1024;
    const auto spread = static_cast<std::int64_t>(entry.slot * 0x9e3779b1U % kSpread);
    due = entry.created_ns + age + age / 8 * spread / kSpread;
  }
  // The kernel forgets neighbours that it does not use itself. That says nothing about them, but from then on it tells
  // nothing either: the address is made anew, which makes the kernel look again.
  if (entry.neighbour_forgotten) due = std::min(due, entry.created_ns + options_.forgotten_age.count());
  return due;
}

}  // namespace verbena::ah
