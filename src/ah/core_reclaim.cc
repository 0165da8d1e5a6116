// How entries go: unlinked from their bindings, retired, and destroyed when nothing names them any more.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "ah/core.h"
#include "rdma/verbs_error.h"

namespace verbena::ah {

namespace {

// How long a creation waits for work in flight to give an address handle back, and how often it looks.
constexpr auto kRoomPatience = std::chrono::milliseconds(200);
constexpr auto kRoomStep = std::chrono::milliseconds(1);
// Reclaimed at once under pressure: one scan for several.
constexpr std::size_t kBatchShare = 32;
constexpr std::size_t kBatchMost = 256;

}  // namespace

// Acquire: partner of the release decrements of handles and pins, which take no mutex_. What makes the first handle of
// a binding, be it out of a pin (settle()) or by its key, does: where both are zero here, they stay so until it is let
// go.
bool Core::is_unheld(const Binding& binding) const {
  return binding.pins.load(std::memory_order_acquire) == 0 && binding.handles.load(std::memory_order_acquire) == 0 &&
         !binding.attempt;
}

bool Core::is_unused(const Entry& entry) const {
  if (entry.state != EntryState::kReady || entry.leases.load(std::memory_order_acquire) != 0) return false;
  for (const Binding* binding = entry.first_binding; binding != nullptr; binding = binding->next_sharing) {
    if (!is_unheld(*binding)) return false;
  }
  return !is_in_flight(entry);
}

std::vector<std::shared_ptr<SendQueue>> Core::senders() const {
  const Lock lock(senders_mutex_);
  return senders_;
}

bool Core::is_in_flight(const Entry& entry) const {
  const Lock lock(senders_mutex_);
  return std::any_of(senders_.begin(), senders_.end(),
                     [&](const std::shared_ptr<SendQueue>& queue) { return queue->names(entry.slot); });
}

std::uint64_t Core::stamps_of(const Entry& entry) const {
  const Lock lock(senders_mutex_);
  std::uint64_t sum = 0;
  for (const std::shared_ptr<SendQueue>& queue : senders_) {
    sum += queue->stamps[entry.slot].load(std::memory_order_relaxed);
  }
  return sum;
}

bool Core::was_used(const Entry& entry) const {
  return static_cast<std::uint32_t>(stamps_of(entry)) != entry.seen_stamps;
}

// Senders leave no time behind, only stamps. A stamp that has moved since the last look means: used meanwhile.
void Core::note_activity(std::int64_t now) {
  const Lock lock(senders_mutex_);
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    std::uint64_t sum = 0;
    for (const std::shared_ptr<SendQueue>& queue : senders_) {
      sum += queue->stamps[entry->slot].load(std::memory_order_relaxed);
    }
    const auto seen = static_cast<std::uint32_t>(sum);
    if (seen == entry->seen_stamps) continue;
    entry->seen_stamps = seen;
    entry->set_active(now);
  }
}

std::vector<Entry*> Core::idle_entries(std::int64_t idle_since) {
  struct Idle {
    Entry* entry;
    std::uint64_t distance;  // sends since its last use, by the sender that used it last
  };
  std::vector<Idle> idle;
  const std::vector<std::shared_ptr<SendQueue>> queues = senders();
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->active_ns() > idle_since || !is_unused(*entry)) continue;
    std::uint64_t distance = std::numeric_limits<std::uint64_t>::max();
    for (const std::shared_ptr<SendQueue>& queue : queues) {
      const std::uint64_t stamp = queue->stamps[entry->slot].load(std::memory_order_relaxed);
      const std::uint64_t position = queue->position.load(std::memory_order_relaxed);
      if (stamp != 0) distance = std::min(distance, position - std::min(stamp, position));  // beyond: retracted
    }
    idle.push_back({entry, distance});
  }
  std::sort(idle.begin(), idle.end(), [](const Idle& a, const Idle& b) {
    if (a.entry->active_ns() != b.entry->active_ns()) return a.entry->active_ns() < b.entry->active_ns();
    return a.distance > b.distance;
  });
  std::vector<Entry*> entries;
  for (const Idle& one : idle) entries.push_back(one.entry);
  return entries;
}

std::size_t Core::reclaim(std::size_t most, std::int64_t idle_since, AhCause cause) {
  note_activity(now_ns());
  std::vector<Entry*> entries = idle_entries(idle_since);
  if (entries.size() > most) entries.resize(most);
  for (Entry* entry : entries) evict(*entry, cause);
  return entries.size();
}

void Core::evict(Entry& entry, AhCause cause) {
  while (Binding* binding = entry.first_binding) {
    unlink(*binding);
    announce(AhEvent::Kind::kEvicted, *binding, cause);
    forget(*binding);
  }
}

void Core::unlink(Binding& binding) {
  Entry* entry = binding.entry.load(std::memory_order_relaxed);
  if (entry == nullptr) return;
  binding.entry.store(nullptr, std::memory_order_release);
  leave(binding, *entry);
}

void Core::leave(Binding& binding, Entry& entry) {
  Binding** link = &entry.first_binding;
  while (*link != &binding) link = &(*link)->next_sharing;
  *link = std::exchange(binding.next_sharing, nullptr);
  if (entry.first_binding == nullptr) retire(entry, binding.key);
}

void Core::detach(Entry& entry) {
  std::uint32_t* link = &index_head(ah_key_of(entry));
  while (*link != kNoSlot && *link != entry.slot) link = &by_slot_[*link]->next_in_index;
  if (*link == entry.slot) *link = entry.next_in_index;
}

void Core::destroy(Entry& entry) {
  by_slot_[entry.slot] = nullptr;
  hop_tags_[entry.slot] = 0;
  free_slots_.push_back(entry.slot);
  paths_.give_back(entry.path);
  lease_holdings_.forget(&entry);
  parted_.erase(&entry);
  made_as_.erase(&entry);
  release_errors_.erase(&entry);
  entry_pool_.destroy(&entry);
}

void Core::retire(Entry& entry, const DestinationKey& key) {
  parted_.emplace(&entry, key);
  detach(entry);
  entry.state = EntryState::kRetired;
  retired_.push_back(&entry);
  poke_keeper();
}

void Core::forget(Binding& binding) {
  if (binding.trouble) --unwell_;
  if (!binding.charged) --unpaid_;
  table_.erase(&binding);
  handle_holdings_.forget(&binding);
  forgotten_.push_back(&binding);
}

// Forgets half of the failed destinations, those first that may be tried again soonest. What had an address, and is
// tried again of itself, goes only where there is nothing else, and is told of.
std::size_t Core::trim_negative(Trim which) {
  const std::int64_t now = now_ns();
  std::vector<Binding*> unwanted, wanted;
  table_.for_each([&](Binding& binding) {
    const bool ready = binding.entry.load(std::memory_order_relaxed) != nullptr;
    if (ready || !binding.trouble || !is_unheld(binding)) return;
    (is_wanted(binding, now) ? wanted : unwanted).push_back(&binding);
  });
  std::vector<Binding*>& negative = unwanted.empty() && which == Trim::kAny ? wanted : unwanted;
  std::sort(negative.begin(), negative.end(),
            [](const Binding* a, const Binding* b) { return a->trouble->retry_at_ns < b->trouble->retry_at_ns; });
  const std::size_t going = (negative.size() + 1) / 2;
  for (std::size_t i = 0; i < going; ++i) {
    if (negative[i]->generation != 0) announce(AhEvent::Kind::kEvicted, *negative[i], AhCause::kPressure);
    forget(*negative[i]);
  }
  if (going != 0) poke_keeper();
  return going;
}

Deadline Core::room_deadline() {
  return Deadline::in(kRoomPatience);
}

// A batch once, for those who come next; then one at a time: somebody else may be taking what is given.
bool Core::make_room(const std::function<bool()>& enough, Binding& for_whom, const Shortage& shortage,
                     Deadline deadline) {
  const std::size_t batch = std::clamp<std::size_t>(max_entries_ / kBatchShare, 1, kBatchMost);
  for (bool first = true;; first = false) {
    const std::size_t given = ask_for_room(shortage, first ? batch : 1);
    if (given == 0 && !first) {
      const Lock lock(mutex_);
      give_up_stale(for_whom);
    }
    sweep();
    Lock lock(mutex_);
    if (enough()) return true;
    if (closed_ || deadline.passed()) return false;
    room_.wait_for(lock, kRoomStep);
    if (enough()) return true;
  }
}

// Another account that is over its share gives first; then, of its own account, who has what was unused longest.
std::size_t Core::ask_for_room(Shortage shortage, std::size_t most) {
  if (shortage == Shortage::kGrant || shortage == Shortage::kDevice) {
    const std::size_t given = arbiter_->make_others_give(*account_, most, shortage == Shortage::kDevice);
    if (given != 0) return given;
  }
  if (shortage == Shortage::kMemory) {
    const Lock lock(mutex_);
    if (const std::size_t given = trim_negative(Trim::kAny); given != 0) return given;
  }
  if (shortage != Shortage::kSlot && arbiter_->has_siblings(*account_, this)) {
    if (const std::size_t given = ask_siblings(shortage, most); given != 0) return given;
  }
  const Lock lock(mutex_);
  if (closed_) return 0;
  const std::size_t reclaimed = reclaim(most, kNever, AhCause::kPressure);
  counts_.reclaimed_pressure += reclaimed;
  return reclaimed;
}

std::size_t Core::ask_siblings(Shortage shortage, std::size_t most) {
  Arbiter::Call call{.most = most, .cause = AhCause::kPressure, .memory = shortage == Shortage::kMemory};
  {
    const Lock lock(mutex_);
    note_activity(now_ns());
    if (const std::vector<Entry*> own = idle_entries(kNever); !own.empty())
      call.idle_since = own.front()->active_ns() - 1;
  }
  return arbiter_->make_siblings_give(*account_, this, call);
}

// Nobody has anything idle, and what is wanted would replace something stale: that one must go first, where room is
// what comes of it.
void Core::give_up_stale(Binding& binding) {
  const Entry* own = binding.entry.load(std::memory_order_relaxed);
  if (closed_ || own == nullptr || !own->stale) return;
  const bool is_last = own->first_binding == &binding && binding.next_sharing == nullptr;
  if (!is_last || own->leases.load(std::memory_order_acquire) != 0) return;
  unlink(binding);
  announce(AhEvent::Kind::kGone, binding, AhCause::kPressure);
}

// Senders that only keep the compiler in order cannot be fenced from here any more. From now on they fence themselves.
// One that is reading with the old setting has its store still in its own processor at worst, for nanoseconds: the wait
// is a million times that.
void Core::make_senders_fence() {
  constexpr auto kStoresDrain = std::chrono::milliseconds(20);
  {
    const Lock lock(senders_mutex_);
    light_.store(false, std::memory_order_relaxed);
    for (const std::shared_ptr<SendQueue>& queue : senders_) queue->light.store(false, std::memory_order_relaxed);
  }
  std::this_thread::sleep_for(kStoresDrain);
  heavy_fence(false);
}

std::size_t Core::give_idle(const Arbiter::Call& call) {
  std::size_t given = 0;
  {
    const Lock lock(mutex_);
    if (closed_ || device_gone_) return 0;
    if (call.memory) given = trim_negative(Trim::kAny);
    if (given == 0) {
      given = reclaim(call.most, call.idle_since, call.cause);
      (call.cause == AhCause::kShare ? counts_.reclaimed_share : counts_.reclaimed_pressure) += given;
    }
  }
  if (given != 0) sweep();
  return given;
}

void Core::grace() {
  if (!heavy_fence(light_.load(std::memory_order_relaxed))) make_senders_fence();
  const std::vector<std::shared_ptr<SendQueue>> queues = senders();
  for (const std::shared_ptr<SendQueue>& queue : queues) queue->wait_outside();
}

std::size_t Core::sweep() {
  const std::lock_guard sweeping(sweep_mutex_);
  std::vector<Entry*> retired;
  std::vector<Binding*> forgotten;
  std::vector<std::unique_ptr<LookupTable::Array>> arrays;
  {
    const Lock lock(mutex_);
    retired.swap(retired_);
    sweeping_ = retired.size();
    forgotten.swap(forgotten_);
    arrays = table_.take_retired();
  }
  const bool graced = std::all_of(retired.begin(), retired.end(), [](const Entry* entry) { return entry->graced; });
  if (!graced || !forgotten.empty() || !arrays.empty()) grace();
  const auto charged =
      std::count_if(forgotten.begin(), forgotten.end(), [](const Binding* one) { return one->charged; });
  account_->release_memory(static_cast<std::size_t>(charged) * kDestinationBytes);
  std::vector<Entry*> destroyed;
  std::vector<Entry*> kept;
  std::vector<std::pair<Entry*, int>> refused;  // with what the device said
  for (Entry* entry : retired) {
    entry->graced = true;
    if (entry->leases.load(std::memory_order_acquire) != 0 || is_in_flight(*entry)) {
      kept.push_back(entry);
    } else if (const int code = ibv_destroy_ah(entry->address); code != 0) {
      refused.emplace_back(entry, rdma::errno_of(code));
      kept.push_back(entry);
    } else {
      destroyed.push_back(entry);
    }
  }
  if (!destroyed.empty()) arbiter_->give_back(*account_, destroyed.size());
  const Lock lock(mutex_);
  sweeping_ = 0;
  retired_.insert(retired_.end(), kept.begin(), kept.end());
  for (Binding* binding : forgotten) binding_pool_.destroy(binding);
  for (Entry* entry : destroyed) destroy(*entry);
  counts_.destroyed += destroyed.size();
  for (const auto& [entry, code] : refused) {
    release_errors_[entry] = rdma::verbs_error("ibv_destroy_ah", "of " + ah::in_words(asked(*entry)), code).message;
  }
  if (!destroyed.empty() || !forgotten.empty()) room_.notify_all();
  return destroyed.size();
}

}  // namespace verbena::ah
