// How a binding gets its entry: by the pool's threads, without mutex_ while anything may block.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "ah/back_off.h"
#include "ah/core.h"
#include "rdma/verbs_error.h"

namespace verbena::ah {

namespace {

// Between two unasked tries of a destination for which there was no room.
constexpr std::int64_t kLongestWhileFull_ns = 1'000'000'000;

// The GID table that the source came from may be out of date: read it again before giving up.
bool may_be_stale_table(int error) {
  return error == EINVAL || error == ENOENT || error == ENODATA || error == ENODEV || error == EADDRNOTAVAIL;
}

// What the kernel refuses has its errno; what has none was not found in the table.
bool may_be_stale_table(const Error& unresolved) {
  return unresolved.system_errno == 0 && unresolved.code != ErrorCode::kInvalidArgument;
}

bool is_full(int error) {
  return error == ENOMEM || error == ENOSPC || error == EAGAIN;
}

std::string advice_for_create(int error, const Destination& destination, const PortFacts& facts, ibv_context* context) {
  switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
      return "the neighbour does not answer: check that the destination is up and on the network of this source (ip "
             "neigh)";
    case EINVAL:
      return advice_for_refusal(destination, facts, context);
    default:
      return {};
  }
}

std::size_t bucket_of(std::int64_t ns) {
  const auto us = static_cast<std::uint64_t>(ns / 1000);
  const std::size_t bucket = us == 0 ? 0 : static_cast<std::size_t>(std::bit_width(us)) - 1;
  return std::min(bucket, LatencyHistogram{}.size() - 1);
}

}  // namespace

void Core::run_attempt(Binding& binding, Try how) {
  if (!pay_for(binding)) {
    if (how.paid) account_->put_back_creation();
    return;
  }
  Epoch begun;
  {
    const Lock lock(mutex_);
    begun = epoch_;
    binding.attempt->outdated = false;
  }
  Result<Resolved> resolved = resolve_now(binding.key);
  if (!resolved && how.may_look_again && may_be_stale_table(resolved.error())) {
    gids_.invalidate();
    resolved = resolve_now(binding.key);
    pool_.submit(Lane::kUrgent, [this] { look_at_table(); });
  }
  if (!resolved) {
    if (how.paid) account_->put_back_creation();
    const Lock lock(mutex_);
    fail(binding, closed_ || device_gone_ ? unavailable() : resolved.error());
    return;
  }
  const std::optional<MacAddress> link = learn_link(resolved->hop.netdev);
  // Before and after: what differs changed while the device resolved it.
  const Neighbour before = ask_neighbour(resolved->hop);
  const NextHop hop = resolved->hop;
  Entry* entry = reserve(binding, std::move(*resolved), before, begun, how);
  if (how.paid) account_->put_back_creation();
  if (entry == nullptr) return;
  if (const Status made = create_address(binding, *entry); !made) {
    on_refused(binding, *entry, made.error(), how.may_look_again);
  } else {
    learn_link(hop.netdev);  // a notice of it is forgotten while nothing leaves by it
    on_created(binding, *entry, begun, ask_neighbour(hop), link);
  }
}

bool Core::pay_for(Binding& binding) {
  {
    const Lock lock(mutex_);
    if (charge(binding)) return true;
  }
  if (make_room([&] { return charge(binding); }, binding, Shortage::kMemory, room_deadline())) return true;
  const Lock lock(mutex_);
  ++counts_.refused;
  fail(binding, closed_ ? unavailable() : no_memory_for(binding.key));
  return false;
}

Core::Neighbour Core::ask_neighbour(const NextHop& hop) const {
  if (!options_.neighbours || hop.address.is_zero() || hop.netdev == 0) return {};
  const Result<std::optional<MacAddress>> answer = options_.neighbours(hop.address, hop.netdev);
  if (!answer) return {};
  return {.known = true, .mac = *answer};
}

namespace {

// Why an entry is not what would be made now; kNone where it is.
AhCause difference(const Entry& there, const NextHop& hop, const Resolved& now, bool mac_known,
                   const std::optional<MacAddress>& mac) {
  if (there.path->source.index != now.path.source.index) return AhCause::kGid;
  if (hop.address != now.hop.address || hop.netdev != now.hop.netdev) return AhCause::kRoute;
  if (mac_known && mac && there.mac() && there.mac() != mac) return AhCause::kNeighbour;
  return AhCause::kNone;
}

}  // namespace

Result<Resolved> Core::resolve_now(const DestinationKey& key) {
  const Result<GidEntries> table = gids_.entries();
  if (!table) return tl::make_unexpected(table.error());
  const std::vector<Removed> removed = removed_now();
  if (removed.empty()) return resolve(destination_of(key), facts_, **table, options_.routes);
  std::vector<GidEntry> left;
  std::copy_if((*table)->begin(), (*table)->end(), std::back_inserter(left),
               [&](const GidEntry& source) { return !is_among(removed, source); });
  return resolve(destination_of(key), facts_, left, options_.routes);
}

// An address may be there several times, with prefixes of different lengths, and be still there when one of them goes.
std::vector<Core::Removed> Core::removed_now() {
  std::vector<Removed> removed;
  {
    const Lock lock(mutex_);
    const std::int64_t now = now_ns();
    std::erase_if(removed_, [now](const Removed& one) { return one.until_ns <= now; });
    removed = removed_;
  }
  std::erase_if(removed, [this](const Removed& one) {
    const Result<Route> route = options_.routes(one.address, one.netdev);
    if (!route || !route->local) return false;
    const Lock lock(mutex_);
    std::erase(removed_, one);
    return true;
  });
  return removed;
}

// An entry that is there, or is being made: then nothing is left to do. What was resolved before the network changed
// may not be what would be resolved now: it is looked at again.
Entry* Core::share(Binding& binding, const Resolved& resolved, const Neighbour& neighbour, Epoch begun) {
  Entry* const found = find_entry(resolved.key);
  if (found == nullptr) return nullptr;
  Entry& there = *found;
  if (there.state == EntryState::kCreating) {
    if (begun.any != epoch_.any) binding.again = true;
    if (there.first_binding->attempt->outdated) binding.attempt->outdated = true;
    waiters_[&there].push_back(&binding);
    return &there;
  }
  if (const AhCause differs = difference(there, hop_of(there), resolved, neighbour.known, neighbour.mac);
      differs != AhCause::kNone) {
    refresh(there, differs);  // nobody new may share it
    return nullptr;
  }
  if (!there.mac() && there.mac_known) there.set_mac(neighbour.mac);
  if (neighbour.known && !neighbour.mac && there.mac()) expect_no_notice(there);
  if (begun.any != epoch_.any) binding.again = true;
  if (binding.entry.load(std::memory_order_relaxed) == &there) ++counts_.rechecked;
  publish(binding, there);
  conclude(binding, std::nullopt);
  return &there;
}

Entry* Core::reserve(Binding& binding, Resolved&& resolved, const Neighbour& neighbour, Epoch begun, Try& how) {
  for (;;) {
    {
      const Lock lock(mutex_);
      if (closed_ || device_gone_) {
        fail(binding, unavailable());
        return nullptr;
      }
      if (share(binding, resolved, neighbour, begun) != nullptr) return nullptr;
      if (!may_create(binding, how)) {
        park(binding, how);
        return nullptr;
      }
      if (!free_slots_.empty()) {
        how.paid = false;
        return new_entry(binding, std::move(resolved), neighbour);
      }
    }
    if (!make_room([this] { return !free_slots_.empty(); }, binding, Shortage::kSlot, room_deadline())) {
      const Lock lock(mutex_);
      ++counts_.refused;
      fail(binding,
           {ErrorCode::kExhausted, 0,
            fmt::format("all {} address handles of {} are in use; let go of handles, or raise {}", max_entries_, name_,
                        account_->limits().max_handles == max_entries_ ? "max_handles" : "max_entries")});
      return nullptr;
    }
  }
}

Entry* Core::new_entry(Binding& binding, Resolved&& resolved, const Neighbour& neighbour) {
  Entry* entry = entry_pool_.make();
  entry->slot = free_slots_.back();
  free_slots_.pop_back();
  by_slot_[entry->slot] = entry;
  if (next_aged_scan_ns_ == kNever) poke_keeper();
  entry->first_binding = &binding;
  entry->path = paths_.take(std::move(resolved.path));
  entry->set_mac(neighbour.mac);
  hop_tags_[entry->slot] = hop_tag(resolved.hop.address);
  entry->next_in_index = std::exchange(index_head(resolved.key), entry->slot);
  return entry;
}

Status Core::create_address(Binding& binding, Entry& entry) {
  std::optional<Deadline> patience;  // from the first refusal on, however often it is tried again
  for (;;) {
    if (Status granted = take_grant(binding, patience); !granted) return granted;
    const Destination destination = destination_of(binding.key);
    const ibv_ah_attr wanted = attributes_of(destination, entry.path->source, facts_);
    ibv_ah_attr attributes = wanted;
    const std::uint64_t released = arbiter_->released();
    const std::int64_t begun = now_ns();
    entry.address = ibv_create_ah(domain_, &attributes);
    const int error = entry.address != nullptr ? 0 : (errno != 0 ? errno : EIO);
    const std::int64_t took = now_ns() - begun;
    if (error == 0) {
      const Lock lock(mutex_);
      ++counts_.created;
      ++counts_.creation_us[bucket_of(took)];
      if (!changes_between(wanted, attributes).empty()) made_as_.emplace(&entry, attributes);
      return {};
    }
    arbiter_->cancel(*account_);
    if (!patience) patience = room_deadline();
    const bool room = is_full(error) &&
                      make_room([&] { return arbiter_->released() > released; }, binding, Shortage::kDevice, *patience);
    if (!room) {
      return tl::make_unexpected(rdma::verbs_error(
          "ibv_create_ah", fmt::format("on {} port {} {}", device_, facts_.port, explain(destination, *entry.path)),
          error, advice_for_create(error, destination, facts_, domain_->context)));
    }
  }
}

Status Core::take_grant(Binding& binding, std::optional<Deadline>& patience) {
  Shortage shortage = Shortage::kGrant;
  const auto granted = [&] {
    const Grant grant = arbiter_->take(*account_);
    shortage = grant == Grant::kBudget ? Shortage::kBudget : Shortage::kGrant;
    return grant == Grant::kGranted;
  };
  if (granted()) return {};
  if (!patience) patience = room_deadline();
  if (make_room(granted, binding, shortage, *patience)) return {};
  return failure(ErrorCode::kExhausted, no_room_in_words(shortage), ENOMEM);
}

std::string Core::no_room_in_words(Shortage shortage) const {
  if (shortage == Shortage::kBudget) {
    return fmt::format("all {} address handles that {} may have are in use; let go of handles, or raise max_handles",
                       account_->limits().max_handles, account_->name());
  }
  return fmt::format(
      "{} has {} of the device's address handles, its share is {}, and nobody over its share has an "
      "idle one; let go of handles",
      account_->name(), arbiter_->used(*account_), arbiter_->share());
}

// Requires: mutex_. A creation rate paces this tenant's creators and nobody else's, and who waits for it holds no
// thread: the attempt begins anew when its turn comes, with what is known then.
bool Core::may_create(const Binding& binding, Try& how) {
  if (how.paid) return true;
  const bool replaces = binding.generation != 0;
  if (!parked_stale_.empty() || (!replaces && !parked_.empty())) return false;
  how.paid = account_->take_creation(now_ns()) == 0;
  return how.paid;
}

void Core::park(Binding& binding, Try how) {
  const bool replaces = binding.generation != 0;
  (replaces ? parked_stale_ : parked_).push_back({&binding, how});
  ++counts_.paced;
  if (parked_queued_) return;
  const std::int64_t wait = account_->take_creation(now_ns());
  if (wait == 0) account_->put_back_creation();
  queue_parked(wait);
}

void Core::queue_parked(std::int64_t wait_ns) {
  parked_queued_ = true;
  pool_.submit_at(Deadline::Clock::now() + std::chrono::nanoseconds(wait_ns), Lane::kUrgent, [this] { run_parked(); });
}

// As many as the rate allows now, by turns of what is stale and what is new; the next when there is one for it.
void Core::run_parked() {
  const Lock lock(mutex_);
  parked_queued_ = false;
  if (closed_) return;
  while (!parked_.empty() || !parked_stale_.empty()) {
    const std::int64_t wait = device_gone_ ? 0 : account_->take_creation(now_ns());
    if (wait != 0) return queue_parked(wait);
    const bool stale = parked_.empty() || (!parked_stale_.empty() && !stale_had_turn_);
    stale_had_turn_ = stale;
    std::deque<Parked>& line = stale ? parked_stale_ : parked_;
    const Parked next = line.front();
    line.pop_front();
    pool_.submit(lane_of(*next.binding), [this, next, paid = !device_gone_] {
      run_attempt(*next.binding, {.may_look_again = next.how.may_look_again, .paid = paid});
    });
  }
}

std::vector<Binding*> Core::take_claimants(Binding& binding, Entry& entry) {
  std::vector<Binding*> claimants{&binding};
  if (const auto node = waiters_.extract(&entry)) {
    claimants.insert(claimants.end(), node.mapped().begin(), node.mapped().end());
  }
  return claimants;
}

void Core::on_created(Binding& binding, Entry& entry, Epoch begun, const Neighbour& neighbour,
                      const std::optional<MacAddress>& link) {
  const Lock lock(mutex_);
  entry.state = EntryState::kReady;
  entry.first_binding = nullptr;
  entry.created_ns = now_ns();
  entry.set_active(0);
  entry.seen_stamps = static_cast<std::uint32_t>(stamps_of(entry));  // of who had its slot before
  entry.begun_all = static_cast<std::uint16_t>(begun.all);
  keep_within_age(entry);
  if (neighbour.known) {
    entry.mac_moved = entry.mac_moved || (entry.mac() && neighbour.mac && entry.mac() != neighbour.mac);
    // Made while the kernel had none: the device needed none, and the first that is heard of is no other.
    entry.mac_known = true;
    if (neighbour.mac) {
      entry.set_mac(neighbour.mac);
    } else if (entry.mac()) {
      expect_no_notice(entry);
    }
  }
  const bool in_doubt = begun.any != epoch_.any;
  for (Binding* claimant : take_claimants(binding, entry)) {
    if (closed_ || device_gone_) {
      fail(*claimant, unavailable());
      continue;
    }
    if (in_doubt) claimant->again = true;
    publish(*claimant, entry);
    conclude(*claimant, std::nullopt);
  }
  if (entry.first_binding == nullptr) {
    if (entry.state == EntryState::kReady) retire(entry, binding.key);
  } else if (begun.all != epoch_.all) {  // while it was made; its replacement is asked for above
    count_stale(revalidate_cause_);
    entry.stale = true;
    detach(entry);
  }
  if (entry.mac_moved && entry.state == EntryState::kReady) refresh(entry, AhCause::kNeighbour);
  const auto own = link_macs_.find(hop_of(entry).netdev);
  const bool link_moved = link && own != link_macs_.end() && own->second != *link;
  if (link_moved && entry.state == EntryState::kReady) refresh(entry, AhCause::kLink);
  if (entry.state == EntryState::kReady && is_among(removed_, entry.path->source)) let_go(entry, AhCause::kAddress);
  // The look at each source passed this one over, since it was not ready.
  if (in_doubt) queue_revalidate(Revalidate::kEntries);
}

void Core::keep_within_age(Entry& entry) {
  const std::int64_t due = due_ns_of(entry);
  if (due >= next_due_ns_) return;
  next_due_ns_ = due;
  poke_keeper();
}

void Core::on_refused(Binding& binding, Entry& entry, const Error& error, bool may_look_again) {
  if (may_look_again && may_be_stale_table(error.system_errno)) {
    gids_.invalidate();
    const Try again{.may_look_again = false};
    std::vector<Binding*> claimants;
    {
      const Lock lock(mutex_);
      claimants = take_claimants(binding, entry);
      discard(entry);
      for (std::size_t i = 1; i < claimants.size(); ++i) {
        pool_.submit(lane_of(*claimants[i]), [this, again, other = claimants[i]] { run_attempt(*other, again); });
      }
    }
    pool_.submit(Lane::kUrgent, [this] { look_at_table(); });
    run_attempt(binding, again);
    return;
  }
  const Lock lock(mutex_);
  if (error.code == ErrorCode::kExhausted) ++counts_.refused;
  const std::vector<Binding*> claimants = take_claimants(binding, entry);
  const Gid next_hop = hop_of(entry).address;
  discard(entry);
  const Error answer = closed_ || device_gone_ ? unavailable() : error;
  for (Binding* claimant : claimants) fail(*claimant, answer, next_hop);
}

void Core::discard(Entry& entry) {
  detach(entry);
  destroy(entry);
}

void Core::publish(Binding& binding, Entry& entry) {
  Entry* old = binding.entry.load(std::memory_order_relaxed);
  if (old == &entry) return;
  // Release: a sender that sees the entry sees its address. Partner: the acquire load in SendQueue::take(). One store
  // from the old to the new: no sender finds nothing in between.
  binding.entry.store(&entry, std::memory_order_release);
  // A replacement is no use: what nobody has used since stays as idle as it was.
  entry.set_active(std::max(entry.active_ns(), old == nullptr || was_used(*old) ? now_ns() : old->active_ns()));
  if (old != nullptr) {
    if (!old->stale) count_stale(binding.cause);
    leave(binding, *old);
    ++counts_.replaced;
  }
  binding.next_sharing = entry.first_binding;
  entry.first_binding = &binding;
  ++binding.generation;
  announce(old != nullptr ? AhEvent::Kind::kReplaced : AhEvent::Kind::kReady, binding, binding.cause);
}

// An attempt that failed by what was so before the network changed is made anew, once: who waits for it goes on
// waiting.
bool Core::make_anew(Binding& binding, const Error& error) {
  Attempt& attempt = *binding.attempt;
  if (!attempt.outdated || attempt.remade || closed_ || device_gone_ || error.code == ErrorCode::kExhausted)
    return false;
  attempt.remade = true;
  binding.again = false;
  pool_.submit(lane_of(binding), [this, &binding] { run_attempt(binding, {}); });
  return true;
}

void Core::fail(Binding& binding, Error error, const Gid& next_hop) {
  if (make_anew(binding, error)) return;
  ++counts_.failed;
  announce(AhEvent::Kind::kFailed, binding, binding.cause, &error);
  const std::int64_t now = now_ns();
  if (!binding.trouble) {
    ++unwell_;
    binding.trouble = std::make_unique<Trouble>();
    binding.trouble->since_ns = now;
  }
  Trouble& trouble = *binding.trouble;
  ++trouble.failures;
  trouble.next_hop = next_hop;
  // Full is no fault of the destination: it may be asked for again at once. The keeper, which nobody asked, waits, but
  // not for long: nobody tells when another process lets go of the device's handles.
  const bool full = error.code == ErrorCode::kExhausted;
  const std::int64_t back_off = back_off_ns(binding);
  trouble.unasked_at_ns = now + (full ? std::min(back_off, kLongestWhileFull_ns) : back_off);
  trouble.retry_at_ns = full || binding.attempt->outdated ? now : trouble.unasked_at_ns;
  trouble.error = error;
  conclude(binding, std::move(error));
  poke_keeper();
}

void Core::conclude(Binding& binding, std::optional<Error> error) {
  if (!error && binding.trouble) {
    binding.trouble.reset();
    --unwell_;
    announce(AhEvent::Kind::kRecovered, binding, binding.cause);
  }
  const std::shared_ptr<Attempt> attempt = std::exchange(binding.attempt, nullptr);
  --under_way_;
  attempt->finish(std::move(error));
  const bool again = std::exchange(binding.again, false);
  if (again && !closed_ && !device_gone_) start_attempt(binding, lane_of(binding), binding.cause);
  if (unwell_ <= options_.max_negative) {
    trim_above_ = options_.max_negative;
  } else if (unwell_ > trim_above_) {
    trim_negative(Trim::kUnwanted);
    trim_above_ = std::max(options_.max_negative, unwell_ + options_.max_negative / 2);
  }
}

// Each directory draws lots of its own: two hosts whose peer went away do not come back to it together.
std::int64_t Core::back_off_ns(const Binding& binding) const {
  const std::uint32_t failures = binding.trouble->failures;
  return back_off(options_.first_back_off, options_.max_back_off, failures, hash_of(binding.key, seed_ + failures))
      .count();
}

}  // namespace verbena::ah
