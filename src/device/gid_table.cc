#include "device/gid_table.h"

#include <algorithm>

namespace verbena::device {

std::optional<std::size_t> GidTable::index_of(const Gid& gid) const noexcept {
  if (gid.is_zero()) return std::nullopt;
  for (std::size_t i = 0; i < used_length_; ++i) {
    if (entries_[i].gid == gid) return i;
  }
  return std::nullopt;
}

bool GidTable::insert(const Gid& gid, std::size_t from) {
  for (std::size_t i = from; i < entries_.size(); ++i) {
    if (!entries_[i].gid.is_zero()) continue;
    entries_[i].gid = gid;
    used_length_ = std::max(used_length_, i + 1);
    return true;
  }
  return false;
}

bool GidTable::follow(const Interface& interface) {
  bool changed = false;
  const auto is_wanted = [&interface](const Gid& gid) {
    return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                       [&gid](const auto& address) { return address.usable && address.gid == gid; });
  };
  for (std::size_t i = 0; i < used_length_; ++i) {
    if (!entries_[i].gid.is_zero() && !is_wanted(entries_[i].gid)) {
      entries_[i].gid = Gid{};
      changed = true;
    }
  }
  for (const auto& address : interface.addresses) {
    if (!address.usable || address.gid.is_zero() || contains(address.gid)) continue;
    const std::size_t reserved = interface.loopback ? 0 : 1;
    const bool takes_the_reserved = reserved == 1 && address.gid.is_link_local() && entries_[0].gid.is_zero();
    changed |= insert(address.gid, takes_the_reserved ? 0 : reserved);
  }
  while (used_length_ > 0 && entries_[used_length_ - 1].gid.is_zero()) --used_length_;
  return changed;
}

bool GidTable::set_infiniband(const Gid& gid) {
  if (used_length_ == 1 && entries_[0].gid == gid) return false;
  entries_[0] = {.gid = gid, .type = engine::GidType::kInfiniband};
  used_length_ = 1;
  return true;
}

}  // namespace verbena::device
