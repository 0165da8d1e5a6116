// The flow steering rules of a port, and to whom a frame goes.
//
//   frame ─┬─> every sniffer: a copy
//          └─> normal rules, by priority, then age ──> the first that takes it, and its twins;
//                 │ none                               behind one that passes on, the next, too
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
  // As many as it bears that each frame is held against one rule after the other.
  static constexpr std::size_t kMost = 4096;

  // `id` names it in remove(). Throws std::bad_alloc, and is as it was then.
  void add(std::uint64_t id, Qpn qpn, const FlowRule& rule);
  void remove(std::uint64_t id) noexcept;

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  bool has_rule_of(Qpn qpn) const noexcept;

  // Calls `deliver(Qpn)` for each copy of the frame: a queue pair that has a sniffer beside the rule that takes it gets
  // two. True where a rule that drops took it.
  template <class Deliver>
  bool steer(const wire::FrameFields& fields, Deliver deliver) const;

 private:
  struct Entry {
    std::uint64_t id;
    Qpn qpn;
    FlowRule rule;
    bool repeats = false;  // its queue pair has a twin of the rule before it, and gets no second copy

    bool does_as(const Entry& other) const noexcept {
      return qpn == other.qpn && rule.drops == other.rule.drops && rule.is_twin_of(other.rule);
    }
  };

  // In the order in which they are asked: sniffers, normal rules by priority, the default for groups, that for all.
  std::vector<Entry> entries_;
};

template <class Deliver>
bool FlowTable::steer(const wire::FrameFields& fields, Deliver deliver) const {
  bool dropped = false;
  const Entry* taken_by = nullptr;  // the rule behind which only its twins are asked
  for (const Entry& entry : entries_) {
    if (taken_by != nullptr && !entry.rule.is_twin_of(taken_by->rule)) continue;
    if (!entry.rule.takes(fields)) continue;
    if (entry.rule.kind != FlowKind::kSniffer && !entry.rule.passes_on) taken_by = &entry;
    if (entry.repeats) continue;  // it may yet take what the one before it passes on
    if (entry.rule.drops) {
      dropped = true;
    } else {
      deliver(entry.qpn);
    }
  }
  return dropped;
}

}  // namespace verbena::engine
