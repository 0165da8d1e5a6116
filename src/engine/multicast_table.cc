#include "engine/multicast_table.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace verbena::engine {

MulticastTable::MulticastTable(const Limits& limits) noexcept
    : max_groups_(limits.max_multicast_groups),
      max_per_group_(limits.max_queue_pairs_per_group),
      max_attachments_(limits.max_multicast_attachments) {}

Status MulticastTable::attach(const Gid& group, Qpn qpn, std::uint16_t lid) {
  if (!group.is_multicast()) {
    return failure(ErrorCode::kInvalidArgument, to_string(group) + " is not a multicast group", EINVAL);
  }
  const auto found = groups_.find(group);
  if (found == groups_.end() && groups_.size() >= max_groups_) {
    return failure(ErrorCode::kExhausted, "the device is in all the multicast groups it can be in", ENOMEM);
  }
  const std::span<const Qpn> present = members(group);
  if (std::find(present.begin(), present.end(), qpn) != present.end()) {
    const std::uint16_t before = lid_of(group, qpn);
    if (before == lid) return {};
    return failure(ErrorCode::kInvalidArgument,
                   "the queue pair is attached to " + to_string(group) + " with LID " + std::to_string(before) +
                       "; detach it before it is attached with LID " + std::to_string(lid),
                   EINVAL);
  }
  if (present.size() >= max_per_group_ || attachments_ >= max_attachments_) {
    return failure(ErrorCode::kExhausted, "no more queue pairs can be attached to " + to_string(group), ENOMEM);
  }
  groups_[group].push_back(qpn);
  if (lid != 0) lids_[{group, qpn.value()}] = lid;
  ++attachments_;
  return {};
}

Status MulticastTable::detach(const Gid& group, Qpn qpn, std::uint16_t lid) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || lid_of(group, qpn) != lid || std::erase(found->second, qpn) == 0) {
    return failure(ErrorCode::kInvalidArgument, "the queue pair is not attached to " + to_string(group), EINVAL);
  }
  lids_.erase({group, qpn.value()});
  if (found->second.empty()) groups_.erase(found);
  --attachments_;
  return {};
}

std::span<const Qpn> MulticastTable::members(const Gid& group) const noexcept {
  const auto found = groups_.find(group);
  return found == groups_.end() ? std::span<const Qpn>() : std::span<const Qpn>(found->second);
}

std::uint16_t MulticastTable::lid_of(const Gid& group, Qpn qpn) const noexcept {
  const auto found = lids_.find({group, qpn.value()});
  return found == lids_.end() ? std::uint16_t{0} : found->second;
}

bool MulticastTable::is_attached(Qpn qpn) const noexcept {
  return std::any_of(groups_.begin(), groups_.end(), [qpn](const auto& group) {
    return std::find(group.second.begin(), group.second.end(), qpn) != group.second.end();
  });
}

}  // namespace verbena::engine
