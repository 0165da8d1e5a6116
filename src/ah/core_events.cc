// What puts addresses in doubt, and what is then done: what is still right stays, the rest is replaced while it serves.
#include <algorithm>
#include <system_error>
#include <utility>

#include "ah/core.h"
#include "rdma/verbs_error.h"

namespace verbena::ah {

namespace {

enum class Doubt {
  kNone,
  kTable,   // the GID table may have changed: check each source
  kAll,     // paths may have changed: make each address anew
  kDevice,  // the device is gone
};

struct Reading {
  Doubt doubt = Doubt::kNone;
  AhCause cause = AhCause::kNone;
};

Reading reading_of(ibv_event_type type, LinkLayer link_layer) {
  const Doubt fabric = link_layer == LinkLayer::kInfiniBand ? Doubt::kAll : Doubt::kTable;
  switch (type) {
    case IBV_EVENT_GID_CHANGE:
      return {Doubt::kTable, AhCause::kGid};
    case IBV_EVENT_PORT_ERR:
      return {Doubt::kTable, AhCause::kPort};
    case IBV_EVENT_PKEY_CHANGE:
      return {Doubt::kTable, AhCause::kPkey};
    case IBV_EVENT_LID_CHANGE:
      return {fabric, AhCause::kLid};
    case IBV_EVENT_SM_CHANGE:
      return {fabric, AhCause::kSubnetManager};
    case IBV_EVENT_CLIENT_REREGISTER:
      return {fabric, AhCause::kReregister};
    case IBV_EVENT_PORT_ACTIVE:
      return {Doubt::kAll, AhCause::kPort};
    case IBV_EVENT_DEVICE_FATAL:
      return {Doubt::kDevice, AhCause::kDevice};
    default:
      return {};
  }
}

// By the lower quarters: each such event makes all anew, so no entry is half of that range behind.
bool is_earlier(std::uint16_t begun, std::uint64_t epoch) {
  return static_cast<std::int16_t>(begun - static_cast<std::uint16_t>(epoch)) < 0;
}

// An event without a port concerns the device.
bool has_port(ibv_event_type type) {
  return type != IBV_EVENT_DEVICE_FATAL;
}

// Where a cause is counted beside the sum; nullptr where nowhere.
std::uint64_t AhStats::*stale_count_of(AhCause cause) {
  switch (cause) {
    case AhCause::kGid:
      return &AhStats::stale_gid;
    case AhCause::kLid:
      return &AhStats::stale_lid;
    case AhCause::kPort:
      return &AhStats::stale_port;
    case AhCause::kPkey:
      return &AhStats::stale_pkey;
    case AhCause::kSubnetManager:
      return &AhStats::stale_subnet_manager;
    case AhCause::kReregister:
      return &AhStats::stale_reregister;
    case AhCause::kNeighbour:
      return &AhStats::stale_neighbour;
    case AhCause::kAddress:
      return &AhStats::stale_address;
    case AhCause::kRoute:
      return &AhStats::stale_route;
    case AhCause::kLink:
      return &AhStats::stale_link;
    case AhCause::kNoticesLost:
      return &AhStats::stale_notices_lost;
    case AhCause::kAge:
      return &AhStats::stale_age;
    case AhCause::kNone:  // an attempt that nothing but a request began found it changed: its GID table was old
      return &AhStats::stale_gid;
    case AhCause::kDevice:
    case AhCause::kIdle:
    case AhCause::kPressure:
    case AhCause::kShare:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

void Core::on_async_event(const ibv_async_event& event) {
  const Reading reading = reading_of(event.event_type, facts_.link_layer);
  if (reading.doubt == Doubt::kNone) return;
  if (has_port(event.event_type) && event.element.port_num != facts_.port) return;
  if (reading.doubt == Doubt::kDevice) {
    give_up_device();
  } else {
    doubt(reading.doubt == Doubt::kAll, reading.cause);
  }
}

void Core::doubt(bool all, AhCause cause) {
  gids_.invalidate();
  const Lock lock(mutex_);
  ++epoch_.any;
  outdate_attempts(each_binding);
  if (all) {
    doubt_each(cause);
  } else {
    table_cause_ = cause;
  }
  queue_revalidate(Revalidate::kFailures);
}

void Core::doubt_each(AhCause cause) {
  if (revalidate_before_ == 0) revalidate_cause_ = cause;
  revalidate_before_ = ++epoch_.all;
}

void Core::queue_revalidate(Revalidate what) {
  revalidate_failures_ = revalidate_failures_ || what == Revalidate::kFailures;
  if (revalidate_queued_ || closed_) return;
  revalidate_queued_ = true;
  pool_.submit(Lane::kUrgent, [this] { revalidate(); });
}

// Run by the pool. Nobody else may have told that the table is another.
void Core::look_at_table() {
  bool changed = false;
  static_cast<void>(read_own(changed));
  if (!changed) return;
  const Lock lock(mutex_);
  ++epoch_.any;
  outdate_attempts(each_binding);
  queue_revalidate(Revalidate::kFailures);
}

// An old table that is published after a newer one would stay: so one at a time, each read inside.
Result<GidEntries> Core::read_own(bool& changed) {
  constexpr std::int64_t kAgain_ns = 250'000'000;
  const std::lock_guard reading(own_mutex_);
  Result<GidEntries> table = gids_.entries();
  {
    const Lock lock(mutex_);
    next_own_ns_ = table ? kNever : now_ns() + kAgain_ns;
    if (table) {
      port_netdevs_.clear();
      for (const GidEntry& entry : **table) {
        if (entry.port == facts_.port) port_netdevs_.push_back(entry.netdev);
      }
    }
  }
  if (!table) {
    poke_keeper();
  } else if (*table != own_kept_) {
    changed = own_kept_ == nullptr || **table != *own_kept_;
    own_.store(table->get(), std::memory_order_release);
    const GidEntries old = std::exchange(own_kept_, *table);
    grace();  // a sender may be reading the old one
  }
  return table;
}

// Run by the pool: reads the table, which is a call into the device.
void Core::revalidate() {
  std::uint64_t before = 0;
  AhCause cause = AhCause::kNone;
  AhCause table_cause = AhCause::kNone;
  bool failures = false;
  {
    const Lock lock(mutex_);
    revalidate_queued_ = false;
    failures = std::exchange(revalidate_failures_, false);
    before = std::exchange(revalidate_before_, 0);
    cause = revalidate_cause_;
    table_cause = std::exchange(table_cause_, AhCause::kGid);
  }
  bool changed = false;
  const Result<GidEntries> table = read_own(changed);
  const Lock lock(mutex_);
  if (closed_ || device_gone_) return;
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    const GidEntry& source = entry->path->source;
    bool present = source.gid.is_zero();  // it needs none
    bool in_place = present;
    for (std::size_t i = 0; table && i < (*table)->size(); ++i) {
      const GidEntry& there = (**table)[i];
      if (there.port != facts_.port || there.gid != source.gid || there.type != source.type) continue;
      present = true;
      in_place = in_place || there == source;
    }
    if (!table) present = true;  // nothing is known: try to make it anew, and keep it until then
    if (!present) {
      let_go(*entry, table_cause);
    } else if (!in_place) {
      refresh(*entry, table_cause);
    } else if (before != 0 && is_earlier(entry->begun_all, before)) {
      refresh(*entry, cause);
    }
  }
  if (changed) outdate_attempts(each_binding);
  if (changed || failures) forgive_failed(each_binding);
}

// Those under way may have resolved their destination already, by what was so before.
void Core::outdate_attempts(const std::function<bool(const Binding&)>& concerned) {
  if (under_way_ == 0) return;
  table_.for_each([&](Binding& binding) {
    if (binding.attempt && concerned(binding)) binding.attempt->outdated = true;
  });
}

// What failed may be asked for again at once, and what is wanted is tried now. Not what found no room: nothing that
// happened outside made any.
void Core::forgive_failed(const std::function<bool(const Binding&)>& concerned) {
  if (unwell_ == 0 || closed_ || device_gone_) return;
  const std::int64_t now = now_ns();
  table_.for_each([&](Binding& binding) {
    if (!binding.trouble || binding.trouble->error.code == ErrorCode::kExhausted || !concerned(binding)) return;
    binding.trouble->retry_at_ns = now;
    if (is_wanted(binding, now)) start_attempt(binding, lane_of(binding), binding.cause);
  });
}

void Core::count_stale(AhCause cause) {
  ++counts_.stale;
  if (std::uint64_t AhStats::*const count = stale_count_of(cause); count != nullptr) ++(counts_.*count);
}

// The replacement is made first; the entry serves until then.
void Core::refresh(Entry& entry, AhCause cause) {
  const bool news = !entry.stale;
  if (news) count_stale(cause);
  entry.stale = true;
  detach(entry);
  if (closed_ || device_gone_) return;
  for (Binding* binding = entry.first_binding; binding != nullptr; binding = binding->next_sharing) {
    if (news) announce(AhEvent::Kind::kStale, *binding, cause);
    start_attempt(*binding, Lane::kReplace, cause);
  }
}

void Core::let_go(Entry& entry, AhCause cause) {
  refresh(entry, cause);
  if (closed_ || device_gone_) return;
  while (Binding* const binding = entry.first_binding) {
    unlink(*binding);
    announce(AhEvent::Kind::kGone, *binding, cause);
  }
}

void Core::recheck(Entry& entry, AhCause cause) {
  if (closed_ || device_gone_) return;
  for (Binding* binding = entry.first_binding; binding != nullptr; binding = binding->next_sharing) {
    start_attempt(*binding, Lane::kReplace, cause);
  }
}

void Core::give_up_device() {
  const Lock lock(mutex_);
  if (std::exchange(device_gone_, true)) return;
  table_.for_each([this](Binding& binding) {
    const bool served = binding.entry.load(std::memory_order_relaxed) != nullptr;
    unlink(binding);
    if (served) announce(AhEvent::Kind::kGone, binding, AhCause::kDevice);
  });
  pool_.submit(Lane::kUrgent, [this] { run_parked(); });  // their requests are answered now
}

Result<Announcer::Ticket> Core::subscribe(AhSubscriber subscriber) {
  if (!subscriber) return failure(ErrorCode::kInvalidArgument, "the subscriber is empty");
  try {
    return announcer_.subscribe(std::move(subscriber));
  } catch (const std::system_error& error) {
    return rdma::verbs_failure("thread", "of the subscribers", error.code().value());
  }
}

void Core::unsubscribe(Announcer::Ticket ticket) {
  announcer_.unsubscribe(ticket);
}

void Core::announce(AhEvent::Kind kind, const Binding& binding, AhCause cause, const Error* error) {
  if (!announcer_.has_subscribers()) return;
  AhEvent event;
  event.kind = kind;
  event.cause = cause;
  event.destination = destination_of(binding.key);
  event.generation = binding.generation == 0 ? 0 : binding.generation - 1;
  if (error != nullptr) event.error = error->message;
  event.when = Deadline::Clock::now();
  announcer_.announce(std::move(event));
}

}  // namespace verbena::ah
