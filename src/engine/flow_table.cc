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
  const auto behind =
      std::upper_bound(entries_.begin(), entries_.end(), place_of(rule),
                       [](const auto& place, const Entry& entry) { return place < place_of(entry.rule); });
  entries_.insert(behind, {id, qpn, rule});
  mark_repeats();
}

void FlowTable::remove(std::uint64_t id) noexcept {
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
  mark_repeats();
}

bool FlowTable::has_rule_of(Qpn qpn) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(), [qpn](const Entry& entry) { return entry.qpn == qpn; });
}

void FlowTable::mark_repeats() noexcept {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    entry->repeats = std::any_of(entries_.begin(), entry, [entry](const Entry& before) {
      return before.qpn == entry->qpn && before.rule.drops == entry->rule.drops && before.rule.is_twin_of(entry->rule);
    });
  }
}

}  // namespace verbena::engine
