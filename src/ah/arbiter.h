// Shares what a device has of address handles between those who use it in this process.
//
// An account is a tenant, or a directory without one. Its share is the capacity divided by the accounts there are. What
// others leave unused an account may use, but for a quarter of each other's share, which is kept for it: so nobody
// starves behind one who holds on to all. When the device is full, who is furthest over its share gives first, from
// what is idle, and where that is nothing the next; nobody is brought below its share by another. The directories of
// one account give to each other whatever the shares.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/token_bucket.h"
#include "verbena/ah_event.h"

namespace verbena::ah {

struct AccountLimits {
  std::size_t max_handles = 0;  // 0: the device's
  std::size_t max_memory = 0;   // bytes; 0: no limit
  std::uint64_t creations_per_second = 0;
  std::uint64_t creation_burst = 1;
};

class Account {
 public:
  Account(std::string name, const AccountLimits& limits)
      : name_(std::move(name)), limits_(limits), bucket_(limits.creations_per_second, limits.creation_burst) {}

  const std::string& name() const noexcept { return name_; }
  const AccountLimits& limits() const noexcept { return limits_; }
  // False, and nothing charged, where it would be over the limit.
  bool charge_memory(std::size_t bytes) noexcept;
  void release_memory(std::size_t bytes) noexcept { memory_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t memory() const noexcept { return memory_.load(std::memory_order_relaxed); }
  // 0: go on; else how long to wait before asking again.
  std::int64_t take_creation(std::int64_t now);
  // One that was taken and not made.
  void put_back_creation();

 private:
  friend class Arbiter;

  const std::string name_;
  const AccountLimits limits_;
  std::atomic<std::size_t> memory_{0};
  std::mutex mutex_;
  TokenBucket bucket_;    // guarded by mutex_
  std::size_t used_ = 0;  // guarded by the arbiter's mutex, as is the next
  std::size_t members_ = 0;
};

// Memory that was charged to an account: released again, unless it is kept.
class MemoryCharge {
 public:
  MemoryCharge(Account& account, std::size_t bytes) noexcept : account_(account), bytes_(bytes) {}
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;
  ~MemoryCharge() { account_.release_memory(bytes_); }
  void keep() noexcept { bytes_ = 0; }

 private:
  Account& account_;
  std::size_t bytes_;
};

enum class Grant : std::uint8_t { kGranted, kBudget, kFull };

class Arbiter;

// The arbiter of a context, for as long as anybody has one: what is opened later at the same address has another.
struct Seat {
  std::shared_ptr<Arbiter> arbiter;
};

// Thread-safety: any thread. Its mutex is innermost; a member is called without it.
// Ownership:     shared by the directories of one context.
// Errors:        none.
class Arbiter {
 public:
  // What a member is asked for: idle address handles, up to so many, unused since then.
  struct Call {
    std::size_t most = 0;
    std::int64_t idle_since = std::numeric_limits<std::int64_t>::max();
    AhCause cause = AhCause::kShare;  // kPressure: by another member of its own account
    bool memory = false;              // the room that is short is memory: destinations that failed will do
  };
  // Returns how much it gave. Called by threads of other members.
  using Give = std::function<std::size_t(const Call&)>;

  // The one of this context; `capacity` is the device's max_ah, 0 where it names none.
  static std::shared_ptr<const Seat> of(ibv_context* context, std::size_t capacity);
  explicit Arbiter(std::size_t capacity);

  // `give`: empty where it has nothing to give.
  void join(const std::shared_ptr<Account>& account, const void* who, Give give);
  // Ignored where it has left already.
  void leave(const void* who);

  // One more address handle for the account.
  Grant take(Account& account);
  // What was taken did not come to be.
  void cancel(Account& account);
  // So many were destroyed.
  void give_back(Account& account, std::size_t count);
  // How many were destroyed so far, by all.
  std::uint64_t released() const noexcept { return released_.load(std::memory_order_acquire); }
  std::size_t used(const Account& account) const;
  std::size_t share() const;

  // Asks those over their share for up to `most`, the largest first, until one gives; returns what came. 0 where nobody
  // who is more over it than the asker would be has anything. `device_full`: the device refused although it has more,
  // so what is in use is all there is.
  std::size_t make_others_give(const Account& asker, std::size_t most, bool device_full);
  bool has_siblings(const Account& account, const void* who) const;
  // Asks the other members of the account, until one gives; returns what came.
  std::size_t make_siblings_give(const Account& account, const void* who, const Call& call);

 private:
  struct Member {
    std::shared_ptr<Account> account;
    const void* who;
    Give give;
  };

  struct Turn {
    std::size_t used;  // by the account
    std::size_t most;
    std::vector<Give> gives;
  };

  std::size_t share_of(std::size_t capacity) const;  // Requires: mutex_
  std::vector<Turn> over_their_share(const Account& asker, std::size_t most, bool device_full) const;
  std::vector<Give> siblings(const Account& account, const void* who) const;

  const std::size_t capacity_;
  std::atomic<std::uint64_t> released_{0};
  mutable std::mutex mutex_;
  std::vector<Member> members_;  // guarded by mutex_, as all below
  std::size_t accounts_ = 0;
  std::size_t used_ = 0;
};

}  // namespace verbena::ah
