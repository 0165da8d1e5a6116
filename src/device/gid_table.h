// The GID table of one port: which address stands at which index.
//
// As the kernel keeps it for rxe: on an Ethernet interface index 0 is kept for the link-local address; every other
// address takes the lowest free index when it appears and holds it until it goes, leaving a hole. All are RoCEv2.
// The loopback interface has no link-local address and keeps no index for one.
//
// Thread-safety: a plain value; published as immutable copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/network.h"
#include "engine/port_view.h"
#include "verbena/gid.h"

namespace verbena::device {

class GidTable {
 public:
  static constexpr std::size_t kLength = 256;

  GidTable() : entries_(kLength) {}

  // Takes over the addresses of `interface`. True where any index changed.
  bool follow(const Interface& interface);

  // The one GID of an InfiniBand port, at index 0. True where it changed.
  bool set_infiniband(const Gid& gid);

  std::size_t length() const noexcept { return entries_.size(); }
  engine::GidType type_at(std::size_t index) const noexcept {
    return index < entries_.size() ? entries_[index].type : engine::GidType::kRoceV2;
  }
  // The zero GID where the index is empty or out of the table.
  Gid at(std::size_t index) const noexcept { return index < entries_.size() ? entries_[index].gid : Gid{}; }
  std::span<const engine::GidEntry> entries() const noexcept { return entries_; }
  std::optional<std::size_t> index_of(const Gid& gid) const noexcept;
  bool contains(const Gid& gid) const noexcept { return index_of(gid).has_value(); }
  // One past the highest index in use.
  std::size_t used_length() const noexcept { return used_length_; }

 private:
  bool insert(const Gid& gid, std::size_t from);

  std::vector<engine::GidEntry> entries_;
  std::size_t used_length_ = 0;
};

}  // namespace verbena::device
