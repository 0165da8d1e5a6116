// What a Core tells about itself.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "ah/core.h"
#include "rdma/kernel_hop_limit.h"

namespace verbena::ah {

PortSpeed Core::port_speed() const {
  const Visit visit(*this);
  if (!visit) return {};
  const Result<PortView> view = query_port(domain_->context, facts_.port);
  return {.bits_per_second = view ? view->bits_per_second : 0};
}

Result<EffectiveAddress> Core::effective(const Binding& binding) {
  const Lock lock(mutex_);
  const Entry* entry = binding.entry.load(std::memory_order_relaxed);
  if (entry == nullptr) {
    return failure(ErrorCode::kUnavailable, "destination " + in_words(destination_of(binding.key)) +
                                                " has no address now" +
                                                (binding.trouble ? ": " + binding.trouble->error.message : ""));
  }
  const Destination destination = destination_of(binding.key);
  const ibv_ah_attr wanted = attributes_of(destination, entry->path->source, facts_);
  const auto made = made_as_.find(entry);
  const ibv_ah_attr& attributes = made != made_as_.end() ? made->second : wanted;
  return EffectiveAddress{.destination = destination,
                          .source = entry->path->source,
                          .attributes = attributes,
                          .changes = changes_between(wanted, attributes),
                          .explanation = explain(destination, *entry->path),
                          .age = std::chrono::nanoseconds(now_ns() - entry->created_ns),
                          .generation = binding.generation - 1,
                          .rate = {}};
}

// Without mutex_: asks the kernel.
void Core::add_untold_changes(EffectiveAddress& address) const {
  if (kind_ != rdma::DeviceKind::kKernelSoftware || address.attributes.is_global == 0) return;
  if (address.destination.gid.is_multicast()) return;  // the kernel resolves nothing
  const Result<Route> route = options_.routes(address.destination.gid, address.source.netdev);
  const auto hops = route ? rdma::kernel_hop_limit(address.destination.gid, *route) : std::nullopt;
  std::string change = rdma::apply_kernel_hop_limit(kind_, address.source.type, hops, address.attributes);
  if (!change.empty()) address.changes.push_back(std::move(change));
}

AhStats Core::stats() {
  const Lock lock(mutex_);
  AhStats stats = counts_;
  stats.live = counts_.created - counts_.destroyed;
  stats.retired = retired_.size() + sweeping_;
  table_.for_each([&](const Binding& binding) {
    const bool ready = binding.entry.load(std::memory_order_relaxed) != nullptr;
    stats.ready += ready ? 1U : 0U;
    stats.pending += binding.attempt && !ready ? 1U : 0U;
    stats.refreshing += binding.attempt && ready ? 1U : 0U;
    stats.negative += !ready && !binding.attempt && binding.trouble ? 1U : 0U;
    stats.handles += binding.handles.load(std::memory_order_relaxed);
  });
  const std::int64_t now = now_ns();
  std::int64_t oldest_ns = now;
  for (const Entry* entry : by_slot_) {
    if (entry == nullptr) continue;
    stats.leases += entry->leases.load(std::memory_order_relaxed);
    if (entry->state != EntryState::kCreating) oldest_ns = std::min(oldest_ns, entry->created_ns);
  }
  constexpr std::int64_t kNsPerMs = 1'000'000;
  stats.oldest_ms = static_cast<std::uint64_t>((now - oldest_ns) / kNsPerMs);
  const Lock senders_lock(senders_mutex_);
  stats.hits += past_hits_;
  stats.misses += past_misses_;
  stats.misused = past_misused_;
  for (const std::shared_ptr<SendQueue>& queue : senders_) {
    stats.hits += queue->position.load(std::memory_order_relaxed) + queue->retracted.load(std::memory_order_relaxed);
    stats.misses += queue->misses.load(std::memory_order_relaxed);
    stats.misused += queue->misused.load(std::memory_order_relaxed);
    stats.in_flight += queue->outstanding();
  }
  return stats;
}

// All under one lock, since the table has no place that outlasts a change at which to go on: some hundred ns a row, and
// the senders, which are what must not wait, take no lock.
std::vector<AhRow> Core::rows() {
  std::vector<AhRow> rows;
  const Lock lock(mutex_);
  const std::int64_t now = now_ns();
  table_.for_each([&](const Binding& binding) { rows.push_back(row_of(binding, now)); });
  for (const Entry* entry : by_slot_) {
    if (entry != nullptr && entry->state == EntryState::kRetired) rows.push_back(row_of(*entry, now));
  }
  return rows;
}

AhRow Core::row_of(const Binding& binding, std::int64_t now) const {
  const Entry* entry = binding.entry.load(std::memory_order_relaxed);
  AhRow row;
  if (entry != nullptr) row = row_of(*entry, now);
  row.destination = destination_of(binding.key);
  row.handles = binding.handles.load(std::memory_order_relaxed);
  row.cause = binding.cause;
  note_longest(row, binding, now);
  if (binding.trouble) {
    row.failures = binding.trouble->failures;
    row.last_error = binding.trouble->error.message;
  }
  if (entry != nullptr) {
    row.state = entry->stale ? AhState::kRefreshing : AhState::kReady;
  } else {
    row.state = binding.attempt ? AhState::kPending : AhState::kFailed;
  }
  return row;
}

AhRow Core::row_of(const Entry& entry, std::int64_t now) const {
  AhRow row;
  row.destination = asked(entry);
  row.state = entry.state == EntryState::kCreating ? AhState::kPending : AhState::kRetired;
  row.source = entry.path->source;
  row.leases = entry.leases.load(std::memory_order_relaxed);
  row.in_flight = is_in_flight(entry);
  row.age = std::chrono::nanoseconds(entry.created_ns != 0 ? now - entry.created_ns : 0);
  if (const auto kept = release_errors_.find(&entry); kept != release_errors_.end()) row.last_error = kept->second;
  row.next_hop = hop_of(entry).address;
  row.mac = entry.mac();
  note_longest(row, entry, now);
  return row;
}

}  // namespace verbena::ah
