// The flow steering rules of a port, and to whom a frame goes.
//
//   frame ─┬─> every sniffer: a copy
//          └─> normal rules, by priority, then age ──> the first that takes it, and its twins; behind a rule that
//          passes
//                 │ none                               on, the next one, too
//                 └─> the default for groups, if it goes to one ──> the default for all
//
// Thread-safety: none; a plain value that its owner copies, changes and publishes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/qpn.h"
#include "engine/flow_rule.h"
#include "wire/ethernet_frame.h"

namespace verbena::engine {

class FlowTable {
 public:
  // `id` names it in remove(). Throws std::bad_alloc.
  void add(std::uint64_t id, Qpn qpn, const FlowRule& rule);
  void remove(std::uint64_t id) noexcept;

  bool empty() const noexcept { return entries_.empty(); }
  bool has_rule_of(Qpn qpn) const noexcept;
  template <class Action>
  void for_each_rule(Action action) const {
    for (const Entry& entry : entries_) action(entry.rule);
  }

  // Calls `deliver(Qpn)` for each copy of the frame: a queue pair that has a sniffer beside the rule that takes it gets
  // two. True where a rule that drops took it.
  template <class Deliver>
  bool steer(const wire::FrameFields& fields, Deliver deliver) const;

 private:
  struct Entry {
    std::uint64_t id;
    Qpn qpn;
    FlowRule rule;
    bool repeats = false;  // its queue pair has a twin of the rule before it
  };

  void mark_repeats() noexcept;

  // In the order in which they are asked: sniffers, normal rules by priority, the default for groups, that for all.
  std::vector<Entry> entries_;
};

template <class Deliver>
bool FlowTable::steer(const wire::FrameFields& fields, Deliver deliver) const {
  bool dropped = false;
  const Entry* taken_by = nullptr;  // the rule behind which only its twins are asked
  for (const Entry& entry : entries_) {
    if (entry.repeats || (taken_by != nullptr && !entry.rule.is_twin_of(taken_by->rule))) continue;
    if (!entry.rule.takes(fields)) continue;
    if (entry.rule.kind != FlowKind::kSniffer && !entry.rule.passes_on) taken_by = &entry;
    if (entry.rule.drops) {
      dropped = true;
    } else {
      deliver(entry.qpn);
    }
  }
  return dropped;
}

}  // namespace verbena::engine
