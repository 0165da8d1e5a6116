// What puts addresses in doubt, and what is then done: what is still right stays, the rest is replaced while it serves.
#include <algorithm>

#include "ah/core.h"

namespace verbena::ah {

namespace {

enum class Doubt {
  kNone,
  kTable,   // the GID table may have changed: check each source
  kAll,     // paths may have changed: make each address anew
  kDevice,  // the device is gone
};

// An event without a port concerns the device.
Doubt doubt_of(ibv_event_type type, LinkLayer link_layer) {
  switch (type) {
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PKEY_CHANGE:
      return Doubt::kTable;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      return link_layer == LinkLayer::kInfiniBand ? Doubt::kAll : Doubt::kTable;
    case IBV_EVENT_PORT_ACTIVE:
      return Doubt::kAll;
    case IBV_EVENT_DEVICE_FATAL:
      return Doubt::kDevice;
    default:
      return Doubt::kNone;
  }
}

bool has_port(ibv_event_type type) {
  return type != IBV_EVENT_DEVICE_FATAL;
}

}  // namespace

void Core::on_async_event(const ibv_async_event& event) {
  const Doubt what = doubt_of(event.event_type, facts_.link_layer);
  if (what == Doubt::kNone) return;
  if (has_port(event.event_type) && event.element.port_num != facts_.port) return;
  if (what == Doubt::kDevice) {
    give_up_device();
  } else {
    doubt(what == Doubt::kAll);
  }
}

void Core::doubt(bool all) {
  gids_.invalidate();
  const Lock lock(mutex_);
  ++epoch_.any;
  if (all) {
    ++epoch_.all;
    revalidate_before_ = epoch_.all;
  }
  queue_revalidate();
}

void Core::queue_revalidate() {
  if (revalidate_queued_ || closed_) return;
  revalidate_queued_ = true;
  pool_.submit(Lane::kFirst, [this] { revalidate(); });
}

// Run by the pool: reads the table, which is a call into the device.
void Core::revalidate() {
  std::uint64_t before = 0;
  {
    const Lock lock(mutex_);
    revalidate_queued_ = false;
    before = std::exchange(revalidate_before_, 0);
  }
  const Result<GidEntries> table = gids_.entries();
  const Lock lock(mutex_);
  if (closed_ || device_gone_) return;
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    bool present = !entry->key.global;
    bool in_place = present;
    for (std::size_t i = 0; table && i < (*table)->size(); ++i) {
      const GidEntry& there = (**table)[i];
      if (there.port != facts_.port || there.gid != entry->source.gid || there.type != entry->source.type) continue;
      present = true;
      in_place = in_place || there == entry->source;
    }
    if (!table) present = true;  // nothing is known: try to make it anew, and keep it until then
    entry->source_gone = !present;
    if (entry->begun_all < before || !in_place) refresh(*entry);
  }
  forgive_failed();
}

// What has no address may be asked for again at once; what somebody holds is tried now.
void Core::forgive_failed() {
  table_.for_each([this](Binding& binding) {
    if (binding.entry.load(std::memory_order_relaxed) != nullptr || binding.failures == 0) return;
    binding.retry_at_ns = 0;
    if (binding.handles.load(std::memory_order_relaxed) != 0) start_attempt(binding, Lane::kLater);
  });
}

// The replacement is made first; the entry serves until then.
void Core::refresh(Entry& entry) {
  if (!entry.stale) ++counts_.stale;
  entry.stale = true;
  detach(entry);
  if (closed_ || device_gone_) return;
  for (Binding* binding = entry.first_binding; binding != nullptr; binding = binding->next_sharing) {
    start_attempt(*binding, Lane::kLater);
  }
}

void Core::give_up_device() {
  const Lock lock(mutex_);
  device_gone_ = true;
  table_.for_each([this](Binding& binding) { unlink(binding); });
}

void Core::on_network_change(const NetworkChange& change) {
  if (change.kind == NetworkChange::Kind::kAddress || change.kind == NetworkChange::Kind::kLink) {
    gids_.invalidate();
  }
  const Lock lock(mutex_);
  ++epoch_.any;
  if (change.kind != NetworkChange::Kind::kAddress) ++epoch_.all;
  if (change.kind == NetworkChange::Kind::kAddress) {
    queue_revalidate();
    return;
  }
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    const bool concerned = change.concerns(entry->key.destination) &&
                           (change.netdev == 0 || entry->source.netdev == 0 || change.netdev == entry->source.netdev);
    if (concerned) refresh(*entry);
  }
  if (!closed_ && !device_gone_) forgive_failed();
}

}  // namespace verbena::ah
