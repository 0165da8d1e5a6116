// Which queue pairs of a device are attached to which multicast group.
//
// Thread-safety: none; a plain value that its owner copies, changes and publishes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/qpn.h"
#include "engine/limits.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::engine {

class MulticastTable {
 public:
  explicit MulticastTable(const Limits& limits = {}) noexcept;

  // Attaching twice is attaching once. EINVAL for a GID that is not a multicast group, and where the queue pair is
  // attached to the group with another LID; ENOMEM at a limit. `lid`: the group's on an InfiniBand port; else 0.
  Status attach(const Gid& group, Qpn qpn, std::uint16_t lid = 0);
  // EINVAL where it is not attached.
  Status detach(const Gid& group, Qpn qpn, std::uint16_t lid = 0);

  // In the order of attachment; empty where nobody is.
  std::span<const Qpn> members(const Gid& group) const noexcept;
  // The LID with which it is attached; 0 where it is not, or has none.
  std::uint16_t lid_of(const Gid& group, Qpn qpn) const noexcept;
  // Whether destroying the queue pair must fail with EBUSY.
  bool is_attached(Qpn qpn) const noexcept;

 private:
  std::unordered_map<Gid, std::vector<Qpn>> groups_;
  std::map<std::pair<Gid, std::uint32_t>, std::uint16_t> lids_;  // by group and QPN; those without are left out
  std::size_t max_groups_;
  std::size_t max_per_group_;
  std::size_t max_attachments_;
  std::size_t attachments_ = 0;
};

}  // namespace verbena::engine
