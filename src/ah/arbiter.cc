#include "ah/arbiter.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace verbena::ah {

namespace {

constexpr std::size_t kReservedPart = 4;  // of a share: kept for an account that does not use it

struct Registry {
  std::mutex mutex;
  std::map<ibv_context*, std::weak_ptr<const Seat>> seats;  // guarded by mutex
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

bool Account::charge_memory(std::size_t bytes) noexcept {
  const std::size_t most = limits_.max_memory == 0 ? std::numeric_limits<std::size_t>::max() : limits_.max_memory;
  std::size_t before = memory_.load(std::memory_order_relaxed);
  // What is refused is never seen in the sum: it would make somebody else's charge fail that fits.
  do {
    if (before > most || bytes > most - before) return false;
  } while (!memory_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void Account::put_back_creation() {
  const std::lock_guard lock(mutex_);
  bucket_.put_back();
}

std::int64_t Account::take_creation(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  return bucket_.take(now);
}

std::shared_ptr<const Seat> Arbiter::of(ibv_context* context, std::size_t capacity) {
  const std::lock_guard lock(registry().mutex);
  auto& seats = registry().seats;
  std::erase_if(seats, [](const auto& place) { return place.second.expired(); });
  std::weak_ptr<const Seat>& place = seats[context];
  std::shared_ptr<const Seat> seat = place.lock();
  if (!seat) place = seat = std::make_shared<const Seat>(Seat{std::make_shared<Arbiter>(capacity)});
  return seat;
}

Arbiter::Arbiter(std::size_t capacity)
    : capacity_(capacity != 0 ? capacity : std::numeric_limits<std::size_t>::max() / 2) {}

void Arbiter::join(const std::shared_ptr<Account>& account, const void* who, Give give) {
  const std::lock_guard lock(mutex_);
  members_.push_back({account, who, std::move(give)});
  if (account->members_++ == 0) ++accounts_;
}

// An account stays while its handles are on the device: what it could not give back is still its own.
void Arbiter::leave(const void* who) {
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.who == who; });
  if (at == members_.end()) return;
  if (--at->account->members_ == 0) --accounts_;
  members_.erase(at);
}

std::size_t Arbiter::share_of(std::size_t capacity) const {
  return std::max<std::size_t>(1, capacity / std::max<std::size_t>(1, accounts_));
}

Grant Arbiter::take(Account& account) {
  const std::lock_guard lock(mutex_);
  if (account.limits_.max_handles != 0 && account.used_ >= account.limits_.max_handles) return Grant::kBudget;
  if (used_ >= capacity_) return Grant::kFull;
  const std::size_t share = share_of(capacity_);
  if (account.used_ >= share) {
    const std::size_t kept = share / kReservedPart;
    std::size_t reserved = 0;
    std::vector<const Account*> seen{&account};
    for (const Member& member : members_) {
      if (std::find(seen.begin(), seen.end(), member.account.get()) != seen.end()) continue;
      seen.push_back(member.account.get());
      reserved += kept - std::min(kept, member.account->used_);
    }
    if (capacity_ - used_ <= reserved) return Grant::kFull;
  }
  ++used_;
  ++account.used_;
  return Grant::kGranted;
}

void Arbiter::cancel(Account& account) {
  const std::lock_guard lock(mutex_);
  --used_;
  --account.used_;
}

void Arbiter::give_back(Account& account, std::size_t count) {
  {
    const std::lock_guard lock(mutex_);
    used_ -= count;
    account.used_ -= count;
  }
  released_.fetch_add(count, std::memory_order_release);
}

std::size_t Arbiter::used(const Account& account) const {
  const std::lock_guard lock(mutex_);
  return account.used_;
}

std::size_t Arbiter::share() const {
  const std::lock_guard lock(mutex_);
  return share_of(capacity_);
}

std::vector<Arbiter::Turn> Arbiter::over_their_share(const Account& asker, std::size_t most, bool device_full) const {
  const std::lock_guard lock(mutex_);
  const std::size_t share = share_of(device_full ? std::min(capacity_, used_) : capacity_);
  std::map<const Account*, Turn> turns;
  for (const Member& member : members_) {
    const Account* account = member.account.get();
    if (account == &asker || !member.give || account->used_ <= share || account->used_ <= asker.used_ + 1) continue;
    Turn& turn = turns[account];
    turn.used = account->used_;
    turn.most = std::min({most, account->used_ - share, (account->used_ - asker.used_ + 1) / 2});
    turn.gives.push_back(member.give);
  }
  std::vector<Turn> sorted;
  for (auto& [account, turn] : turns) sorted.push_back(std::move(turn));
  std::sort(sorted.begin(), sorted.end(), [](const Turn& a, const Turn& b) { return a.used > b.used; });
  return sorted;
}

std::size_t Arbiter::make_others_give(const Account& asker, std::size_t most, bool device_full) {
  for (const Turn& turn : over_their_share(asker, most, device_full)) {
    std::size_t given = 0;
    for (const Give& give : turn.gives) {
      if (given < turn.most) given += give({.most = turn.most - given});
    }
    if (given != 0) return given;
  }
  return 0;
}

std::vector<Arbiter::Give> Arbiter::siblings(const Account& account, const void* who) const {
  std::vector<Give> gives;
  const std::lock_guard lock(mutex_);
  for (const Member& member : members_) {
    if (member.account.get() == &account && member.who != who && member.give) gives.push_back(member.give);
  }
  return gives;
}

bool Arbiter::has_siblings(const Account& account, const void* who) const {
  return !siblings(account, who).empty();
}

std::size_t Arbiter::make_siblings_give(const Account& account, const void* who, const Call& call) {
  for (const Give& give : siblings(account, who)) {
    if (const std::size_t given = give(call); given != 0) return given;
  }
  return 0;
}

}  // namespace verbena::ah
