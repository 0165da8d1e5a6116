#include "engine/flow_table.h"

#include <algorithm>
#include <tuple>

namespace verbena::engine {
namespace {

int rank_of(FlowKind kind) noexcept {
  switch (kind) {
    case FlowKind::kSniffer:
      return 0;
    case FlowKind::kNormal:
      return 1;
    case FlowKind::kGroupDefault:
      return 2;
    case FlowKind::kAllDefault:
      return 3;
  }
  return 3;
}

std::tuple<int, unsigned> place_of(const FlowRule& rule) noexcept {
  return {rank_of(rule.kind), rule.kind == FlowKind::kNormal ? rule.priority : 0U};
}

}  // namespace

void FlowTable::add(std::uint64_t id, Qpn qpn, const FlowRule& rule) {
  const auto place = place_of(rule);
  const auto first = std::lower_bound(entries_.begin(), entries_.end(), place,
                                      [](const Entry& entry, const auto& of) { return place_of(entry.rule) < of; });
  const auto behind = std::find_if(first, entries_.end(), [&](const Entry& e) { return place_of(e.rule) != place; });
  Entry added{id, qpn, rule};
  added.repeats = std::any_of(first, behind, [&](const Entry& before) { return before.does_as(added); });
  entries_.insert(behind, added);
}

// Behind one that is no repeat, the next of its kind is none any more.
void FlowTable::remove(std::uint64_t id) noexcept {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [id](const Entry& entry) { return entry.id == id; });
  if (found == entries_.end()) return;
  if (!found->repeats) {
    const auto place = place_of(found->rule);
    for (auto next = found + 1; next != entries_.end() && place_of(next->rule) == place; ++next) {
      if (!next->does_as(*found)) continue;
      next->repeats = false;
      break;
    }
  }
  entries_.erase(found);
}

bool FlowTable::has_rule_of(Qpn qpn) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(), [qpn](const Entry& entry) { return entry.qpn == qpn; });
}

}  // namespace verbena::engine
