// What the application asks of a Core: nothing here calls the device.
#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "ah/core.h"
#include "rdma/verbs_error.h"
#include "verbena/grh.h"
#include "verbena/verbs_object.h"

namespace verbena::ah {

namespace {

// Destinations that may wait for memory where few have some.
constexpr std::size_t kFew = 64;

}  // namespace

Error Core::unavailable() const {
  if (closed_) return {ErrorCode::kUnavailable, 0, fmt::format("the address directory of {} is closed", name_)};
  return {ErrorCode::kUnavailable, 0,
          fmt::format("the device of {} is gone (IBV_EVENT_DEVICE_FATAL); open it again, with a new directory", name_)};
}

Core::Asked Core::ask(const Destination& destination) {
  const auto refuse = [](Error error) {
    return Asked{.ready = nullptr, .attempt = std::make_shared<Attempt>(std::move(error))};
  };
  if (closed_ || device_gone_) return refuse(unavailable());
  if (Status status = validate(destination, facts_); !status) return refuse(status.error());
  const DestinationKey key = key_of(destination, facts_.port);
  Binding* binding = table_.find(key);
  if (binding != nullptr && binding->entry.load(std::memory_order_relaxed) != nullptr) {
    ++counts_.hits;
    return {.ready = binding, .attempt = {}};
  }
  if (binding != nullptr && binding->attempt) {
    ++counts_.misses;
    return {.ready = nullptr, .attempt = binding->attempt};
  }
  if (binding != nullptr && binding->trouble) {
    if (const std::int64_t now = now_ns(); now < binding->trouble->retry_at_ns) {
      ++counts_.negative_hits;
      return refuse(still_failing(*binding, now));
    }
  }
  ++counts_.misses;
  if (binding == nullptr) binding = make_binding(key);
  if (binding == nullptr) {
    ++counts_.refused;
    return refuse(no_room_for(key));
  }
  start_attempt(*binding, lane_of(*binding), AhCause::kNone);
  return {.ready = nullptr, .attempt = binding->attempt};
}

Error Core::no_room_for(const DestinationKey& key) const {
  if (table_.size() >= 2 * max_entries_ + options_.max_negative) {
    return {ErrorCode::kExhausted, 0,
            fmt::format("the address directory of {} knows {} destinations, all in use or being created; let go of "
                        "handles, or raise max_entries (now {})",
                        name_, table_.size(), max_entries_)};
  }
  return no_memory_for(key);
}

Error Core::no_memory_for(const DestinationKey& key) const {
  return {
      ErrorCode::kExhausted, 0,
      fmt::format("no room for destination {} in the memory of the tenant {}: {} bytes are taken, {} of them by "
                  "destinations of {}, and none of these is idle or failed{}; let go of handles, or raise max_memory "
                  "(now {} bytes)",
                  in_words(destination_of(key)), account_->name(), account_->memory(),
                  (table_.size() - unpaid_) * kDestinationBytes, name_,
                  unpaid_ > 1 ? fmt::format(" for the {} that wait", unpaid_) : "", account_->limits().max_memory)};
}

Error Core::still_failing(const Binding& binding, std::int64_t now) const {
  Error error = binding.trouble->error;
  error.message += fmt::format(" (failed {} time(s); tried again in {} ms at the earliest)", binding.trouble->failures,
                               (binding.trouble->retry_at_ns - now) / 1'000'000);
  return error;
}

Binding* Core::make_binding(const DestinationKey& key) {
  if (table_.size() >= 2 * max_entries_ + options_.max_negative) {
    trim_negative(Trim::kAny);
    if (table_.size() >= 2 * max_entries_ + options_.max_negative) return nullptr;
  }
  const bool charged = account_->charge_memory(kDestinationBytes);
  if (!charged && !may_wait_for_memory()) return nullptr;
  MemoryCharge charge(*account_, charged ? kDestinationBytes : 0);
  const auto give_back = [this](Binding* one) { binding_pool_.destroy(one); };
  std::unique_ptr<Binding, decltype(give_back)> binding(binding_pool_.make(key), give_back);
  binding->charged = charged;
  table_.insert(binding.get());
  charge.keep();
  unpaid_ += charged ? 0U : 1U;
  if (table_.has_retired()) poke_keeper();  // which frees the array that it outgrew
  return binding.release();
}

// What waits is memory too. As many as there are destinations that could make room may wait, or a few.
bool Core::may_wait_for_memory() {
  const auto may = [this] { return unpaid_ < std::max(kFew, table_.size() - unpaid_); };
  if (!may()) trim_negative(Trim::kAny);
  return may();
}

bool Core::charge(Binding& binding) {
  if (binding.charged) return true;
  if (!account_->charge_memory(kDestinationBytes)) return false;
  binding.charged = true;
  --unpaid_;
  return true;
}

void Core::start_attempt(Binding& binding, Lane lane, AhCause cause) {
  binding.cause = cause;
  if (binding.attempt) {
    binding.again = true;
    return;
  }
  auto attempt = std::make_shared<Attempt>(&binding);
  pool_.submit(lane, [this, &binding] { run_attempt(binding, {}); });  // which begins by waiting for mutex_
  binding.attempt = std::move(attempt);
  ++under_way_;
}

// Who waits for memory waits behind those who need none. What found no source or route asked no device, so that trying
// it again holds no thread: it comes back as quickly as what is stale.
Lane Core::lane_of(const Binding& binding) {
  if (!binding.charged) return Lane::kLater;
  if (!binding.trouble) return binding.generation != 0 ? Lane::kReplace : Lane::kFirst;
  if (binding.generation == 0) return Lane::kLater;
  const bool at_once = binding.trouble->error.code != ErrorCode::kExhausted && binding.trouble->next_hop.is_zero();
  return at_once ? Lane::kReplace : Lane::kRestore;
}

AhHandle Core::adopt(Binding& binding, const CallSite& place) {
  Holding& holding = handle_holdings_.take(&binding, &binding.holding, place, now_ns());
  binding.handles.fetch_add(1, std::memory_order_relaxed);
  return {shared_from_this(), &binding, &holding};
}

Result<AhHandle> Core::settle(const Attempt& attempt, Deadline deadline, const CallSite& place) {
  std::optional<Status> outcome = attempt.wait(deadline);
  if (!outcome) {
    return failure(ErrorCode::kTimedOut,
                   fmt::format("destination {} was not ready by the deadline; the attempt goes on: ask again later",
                               in_words(destination_of(attempt.binding()->key))));
  }
  if (!*outcome) return tl::make_unexpected(outcome->error());
  const Lock lock(mutex_);
  return adopt(*attempt.binding(), place);
}

// The attempt is finished under mutex_: what it calls then only puts the callback into the announcer's line.
Status Core::on_ready(const std::shared_ptr<Attempt>& attempt, const CallSite& place,
                      std::function<void(Result<AhHandle>)> callback) {
  try {
    announcer_.prepare();
  } catch (const std::system_error& error) {
    return rdma::verbs_failure("thread", "of the callbacks", error.code().value());
  }
  attempt->when_done([self = shared_from_this(), attempt = std::shared_ptr<Attempt>(attempt), place,
                      call = std::move(callback)]() mutable {
    Core& core = *self;
    core.announcer_.call([self = std::move(self), attempt = std::move(attempt), place, call = std::move(call)] {
      call(self->settle(*attempt, Deadline::at({}), place));
    });
  });
  return {};
}

Result<AhHandle> Core::acquire(const Destination& destination, Deadline deadline, const CallSite& place) {
  Asked asked;
  {
    const Lock lock(mutex_);
    asked = ask(destination);
    if (asked.ready != nullptr) return adopt(*asked.ready, place);
  }
  return settle(*asked.attempt, deadline, place);
}

AhTicket Core::acquire_async(const Destination& destination, const CallSite& place) {
  const Lock lock(mutex_);
  Asked asked = ask(destination);
  if (asked.ready != nullptr) {
    asked.attempt = std::make_shared<Attempt>(asked.ready);
    asked.attempt->finish(std::nullopt);
  }
  return {shared_from_this(), std::move(asked.attempt), place};
}

std::size_t Core::prewarm(std::span<const Destination> destinations) {
  std::size_t started = 0;
  for (const Destination& destination : destinations) {
    const Lock lock(mutex_);
    const Asked asked = ask(destination);
    if (asked.ready == nullptr && !asked.attempt->done()) ++started;
  }
  return started;
}

AhHandle Core::find(const Destination& destination, const CallSite& place) {
  const Lock lock(mutex_);
  Binding* binding = table_.find(key_of(destination, facts_.port));
  if (binding == nullptr || binding->entry.load(std::memory_order_relaxed) == nullptr) {
    ++counts_.misses;
    return {};
  }
  ++counts_.hits;
  return adopt(*binding, place);
}

Result<AhLease> Core::lease(Binding& binding, const CallSite& place) {
  const Lock lock(mutex_);
  Entry* entry = binding.entry.load(std::memory_order_relaxed);
  if (entry == nullptr) {
    if (closed_ || device_gone_) return tl::make_unexpected(unavailable());
    return failure(ErrorCode::kUnavailable,
                   fmt::format("destination {} has no address now{}{}", in_words(destination_of(binding.key)),
                               binding.trouble ? ": " : "", binding.trouble ? binding.trouble->error.message : ""));
  }
  Holding& holding = lease_holdings_.take(entry, nullptr, place, now_ns());
  entry->leases.fetch_add(1, std::memory_order_relaxed);
  return AhLease(shared_from_this(), entry, &holding);
}

bool Core::is_superseded(const Entry& entry) {
  const Lock lock(mutex_);
  return entry.state == EntryState::kRetired || entry.stale;
}

Result<AhSender> Core::make_sender(const CallSite& place) {
  {
    const Lock lock(mutex_);
    if (closed_ || device_gone_) return tl::make_unexpected(unavailable());
  }
  const std::size_t bytes = max_entries_ * sizeof(std::uint64_t);
  const std::size_t most = account_->limits().max_memory;
  // What can never fit drives nobody out.
  if (most != 0 && bytes > most) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("a sender of {} takes {} bytes (8 for each of max_entries {}), and the tenant may have {} "
                    "in all; lower max_entries, or raise max_memory",
                    name_, bytes, max_entries_, most));
  }
  if (!charge_sender(bytes)) {
    const Lock lock(mutex_);
    if (closed_ || device_gone_) return tl::make_unexpected(unavailable());
    return failure(
        ErrorCode::kExhausted,
        fmt::format("a sender of {} takes {} bytes, which is more than the tenant may have beside the {} that "
                    "it has; lower max_entries, or raise max_memory",
                    name_, bytes, account_->memory()));
  }
  MemoryCharge charge(*account_, bytes);
  const Lock lock(senders_mutex_);
  auto queue =
      std::make_shared<SendQueue>(table_, max_entries_, facts_.port, light_.load(std::memory_order_relaxed), place);
  senders_.push_back(queue);
  charge.keep();
  return AhSender(shared_from_this(), std::move(queue));
}

void Core::drop_sender(const std::shared_ptr<SendQueue>& queue) {
  if (queue->outstanding() == 0) return retire_sender(queue);
  detail::report_release_failure(
      {ErrorCode::kBusy, 0,
       fmt::format("address directory of {}: a sender goes with {}; tell it of completions, or call drained() after "
                   "its queue pair is gone, before that: until the directory ends, these addresses are kept",
                   name_, in_words(rest_of(*queue)))});
}

// What is idle or failed makes room, in whichever directory of the tenant; the keeper takes it from the device.
bool Core::charge_sender(std::size_t bytes) {
  const Deadline deadline = room_deadline();
  const std::size_t most = bytes / kDestinationBytes + 1;
  while (!account_->charge_memory(bytes)) {
    {
      const Lock lock(mutex_);
      if (closed_ || deadline.passed()) return false;
    }
    ask_for_room(Shortage::kMemory, most);
    Lock lock(mutex_);
    room_.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

// A queue with work in flight stays: its stamps hold back what that work names. Those of one that goes are taken out of
// what was seen of each entry: it is use that changes the sum of the stamps, and nothing else.
void Core::retire_sender(const std::shared_ptr<SendQueue>& queue) {
  if (queue->outstanding() != 0) return;
  const Lock lock(mutex_);
  const Lock senders_lock(senders_mutex_);
  const auto at = std::find(senders_.begin(), senders_.end(), queue);
  if (at == senders_.end()) return;
  for (Entry* entry : by_slot_) {
    if (entry == nullptr) continue;
    entry->seen_stamps -= static_cast<std::uint32_t>(queue->stamps[entry->slot].load(std::memory_order_relaxed));
  }
  past_hits_ += queue->position + queue->retracted;
  past_misses_ += queue->misses;
  past_misused_ += queue->misused;
  senders_.erase(at);
  account_->release_memory(max_entries_ * sizeof(std::uint64_t));
}

namespace {

// The same class of traffic; the marks of congestion on the way here are not for the way back.
std::uint8_t reply_traffic_class(std::uint8_t received) {
  constexpr std::uint8_t kEcnMask = 0x03;
  constexpr std::uint8_t kCapable = 0x02;
  const auto dscp = static_cast<std::uint8_t>(received & ~kEcnMask);
  return (received & kEcnMask) != 0 ? static_cast<std::uint8_t>(dscp | kCapable) : dscp;
}

}  // namespace

Result<Destination> Core::reply_to(const ibv_wc& completion, std::span<const std::byte, 40> grh) {
  {
    const Lock lock(mutex_);
    if (closed_ || device_gone_) return tl::make_unexpected(unavailable());
  }
  if ((completion.wc_flags & IBV_WC_GRH) == 0) return reply_from(completion, grh, {});
  const Visit visit(*this);
  if (!visit) {
    const Lock lock(mutex_);
    return tl::make_unexpected(unavailable());
  }
  const Result<GidEntries> table = gids_.entries();
  if (!table) return tl::make_unexpected(table.error());
  return reply_from(completion, grh, **table);
}

Result<Destination> Core::reply_from(const ibv_wc& completion, std::span<const std::byte, 40> grh,
                                     const std::vector<GidEntry>& own) const {
  if (completion.status != IBV_WC_SUCCESS) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("the completion failed (status {}): it tells no sender", int{completion.status}));
  }
  Destination reply;
  reply.port = facts_.port;
  reply.hop_limit = options_.reply_hop_limit;
  const bool infiniband = facts_.link_layer == LinkLayer::kInfiniBand;
  if (infiniband) {
    reply.lid = completion.slid;
    reply.service_level = completion.sl;
    reply.source_path_bits = completion.dlid_path_bits;
  }
  if ((completion.wc_flags & IBV_WC_GRH) == 0) {
    if (infiniband && !facts_.grh_required) return reply;
    return failure(ErrorCode::kInvalidArgument,
                   "the completion has no IBV_WC_GRH: on this port the sender is told by the GRH alone");
  }
  const auto is_own = [this, &own](const Gid& gid) {
    return std::any_of(own.begin(), own.end(),
                       [&](const GidEntry& entry) { return entry.port == facts_.port && entry.gid == gid; });
  };
  const Result<GrhView> view = parse_grh(grh, completion.byte_len, is_own);
  if (!view) return tl::make_unexpected(view.error());
  reply.gid = view->source;
  if (!view->destination.is_multicast() && is_own(view->destination)) reply.source = view->destination;
  reply.traffic_class = reply_traffic_class(view->traffic_class);
  reply.flow_label = view->flow_label;
  return reply;
}

}  // namespace verbena::ah
