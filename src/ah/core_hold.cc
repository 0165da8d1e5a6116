// Who holds on: handles and leases by the place that took them, senders by what they have not been told to be
// completed.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "ah/core.h"
#include "verbena/live_objects.h"

namespace verbena::ah {

std::vector<AhHolding> Core::holdings(std::int64_t now, std::chrono::nanoseconds at_least) const {
  std::vector<AhHolding> found;
  const auto add = [&](const Destination& destination, const Holding& record, bool lease) {
    const std::chrono::nanoseconds held = held_for(record.since, now);
    if (held < at_least) return;
    found.push_back({.destination = destination,
                     .place = *record.place,
                     .held = held,
                     .count = record.count.load(std::memory_order_relaxed),
                     .lease = lease});
  };
  table_.for_each([&](const Binding& binding) {
    handle_holdings_.for_each(&binding, &binding.holding,
                              [&](const Holding& record) { add(destination_of(binding.key), record, false); });
  });
  for (const Entry* entry : by_slot_) {
    if (entry == nullptr) continue;
    lease_holdings_.for_each(entry, nullptr, [&](const Holding& record) { add(asked(*entry), record, true); });
  }
  std::stable_sort(found.begin(), found.end(), [](const AhHolding& a, const AhHolding& b) { return a.held > b.held; });
  return found;
}

std::vector<AhHolding> Core::leaks(std::chrono::nanoseconds held_longer_than) {
  const Lock lock(mutex_);
  return holdings(now_ns(), held_longer_than);
}

namespace {

void note_longer(AhRow& row, const Holding& record, std::int64_t now) {
  const std::chrono::nanoseconds held = held_for(record.since, now);
  if (row.held_at.line() != 0 && held <= row.held) return;
  row.held = held;
  row.held_at = *record.place;
}

}  // namespace

void Core::note_longest(AhRow& row, const Binding& binding, std::int64_t now) const {
  handle_holdings_.for_each(&binding, &binding.holding, [&](const Holding& record) { note_longer(row, record, now); });
}

void Core::note_longest(AhRow& row, const Entry& entry, std::int64_t now) const {
  lease_holdings_.for_each(&entry, nullptr, [&](const Holding& record) { note_longer(row, record, now); });
}

AhSenderRest Core::rest_of(const SendQueue& queue) {
  const Lock lock(mutex_);
  AhSenderRest rest{.completed = queue.completed.load(std::memory_order_acquire),
                    .position = queue.position.load(std::memory_order_relaxed),
                    .destinations = {},
                    .place = queue.place};
  if (rest.empty()) return rest;
  for (const Entry* entry : by_slot_) {
    if (entry != nullptr && queue.names(entry->slot)) rest.destinations.push_back(asked(*entry));
  }
  return rest;
}

std::vector<AhSenderRest> Core::rests() {
  std::vector<AhSenderRest> found;
  for (const std::shared_ptr<SendQueue>& queue : senders()) {
    if (AhSenderRest rest = rest_of(*queue); !rest.empty()) found.push_back(std::move(rest));
  }
  return found;
}

AhLeftover Core::leftover() {
  AhLeftover left;
  left.senders = rests();
  const Lock lock(mutex_);
  const std::int64_t now = now_ns();
  left.calls_under_way = has_calls_under_way();
  for (const Entry* entry : by_slot_) {
    if (entry != nullptr) left.rows.push_back(row_of(*entry, now));
  }
  left.held = holdings(now, std::chrono::nanoseconds::zero());
  for (const AhHolding& one : left.held) {
    if (!one.lease) left.handles += one.count;
  }
  return left;
}

// Nothing will destroy them any more, and they hold the domain: who looks for what does, finds them.
void Core::name_what_stays() {
  if (!domain_keeper_) return;  // the application's own: it may be gone, and another at its address
  for (const Entry* entry : by_slot_) {
    if (entry == nullptr || entry->address == nullptr) continue;
    CallSite place;
    lease_holdings_.for_each(entry, nullptr, [&](const Holding& record) { place = *record.place; });
    for (const std::shared_ptr<SendQueue>& queue : senders_) {
      if (queue->names(entry->slot)) place = queue->place;
    }
    detail::note_alive(entry->address, "address handle of " + in_words(asked(*entry)), place, domain_);
    detail::note_left_behind(entry->address);
  }
}

}  // namespace verbena::ah
