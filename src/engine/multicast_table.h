// Which queue pairs of a device are attached to which multicast group.
//
// Thread-safety: none; a plain value that its owner copies, changes and publishes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/qpn.h"
#include "engine/limits.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::engine {

class MulticastTable {
 public:
  explicit MulticastTable(const Limits& limits = {}) noexcept;

  // Attaching twice is attaching once. EINVAL for a GID that is not a multicast group; ENOMEM at a limit.
  Status attach(const Gid& group, Qpn qpn);
  // EINVAL where it is not attached.
  Status detach(const Gid& group, Qpn qpn);

  // In the order of attachment; empty where nobody is.
  std::span<const Qpn> members(const Gid& group) const noexcept;
  // Whether destroying the queue pair must fail with EBUSY.
  bool is_attached(Qpn qpn) const noexcept;

 private:
  std::unordered_map<Gid, std::vector<Qpn>> groups_;
  std::size_t max_groups_;
  std::size_t max_per_group_;
  std::size_t max_attachments_;
  std::size_t attachments_ = 0;
};

}  // namespace verbena::engine
