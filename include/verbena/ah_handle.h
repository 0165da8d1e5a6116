// What an application holds of a directory: a counted handle, a lease on one address, a request under way.
#pragma once

#include <functional>
#include <memory>

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/deadline.h"
#include "verbena/destination.h"
#include "verbena/export.h"
#include "verbena/result.h"

namespace verbena {

namespace ah {
class Core;
struct Attempt;
struct Binding;
struct Entry;
struct Holding;
}  // namespace ah

class AhLease;

// Interest in a destination, counted: while one is held the destination is kept ready. It follows replacements: what
// next(handle) gives is always the current address.
//
// Thread-safety: one object by one thread at a time; copies are independent.
// Ownership:     shared. Dropping the last one calls nothing on the device: the entry becomes idle.
// Errors:        none; empty() after a move.
class VERBENA_API AhHandle {
 public:
  AhHandle() = default;
  AhHandle(const AhHandle& other);
  AhHandle(AhHandle&& other) noexcept;
  AhHandle& operator=(AhHandle other) noexcept;
  ~AhHandle();

  bool empty() const noexcept { return binding_ == nullptr; }
  explicit operator bool() const noexcept { return !empty(); }
  // Requires: !empty().
  Destination destination() const noexcept;
  // The current address itself, for code that posts without an AhSender. kUnavailable where there is none now.
  // `place` is what a report names while it is held (AhDirectory::leaks).
  Result<AhLease> lease(CallSite place = CallSite::current()) const;
  friend bool operator==(const AhHandle& a, const AhHandle& b) noexcept { return a.binding_ == b.binding_; }

 private:
  friend class ah::Core;
  friend class AhSender;
  friend class AhDirectory;
  AhHandle(std::shared_ptr<ah::Core> core, ah::Binding* binding, ah::Holding* holding) noexcept;

  std::shared_ptr<ah::Core> core_;
  ah::Binding* binding_ = nullptr;
  ah::Holding* holding_ = nullptr;  // null where binding_ is
};

// One address handle, kept until dropped, even when the destination has got a newer one meanwhile. The holder drops it
// when the last work request that names it has completed.
//
// Thread-safety: one object by one thread at a time.
// Ownership:     move-only; the directory destroys the address handle some time after the drop. One that outlives the
//                directory: see AhDirectory.
// Errors:        none.
class VERBENA_API AhLease {
 public:
  AhLease() = default;
  AhLease(AhLease&& other) noexcept;
  AhLease& operator=(AhLease&& other) noexcept;
  ~AhLease();
  // nullptr where empty.
  ibv_ah* get() const noexcept;
  // A newer address exists, or the destination has none any more.
  bool superseded() const noexcept;

 private:
  friend class ah::Core;
  AhLease(std::shared_ptr<ah::Core> core, ah::Entry* entry, ah::Holding* holding) noexcept;

  std::shared_ptr<ah::Core> core_;
  ah::Entry* entry_ = nullptr;
  ah::Holding* holding_ = nullptr;  // null where entry_ is
};

// A request under way.
//
// Thread-safety: any thread; copies share one outcome.
// Ownership:     shared. Dropping it does not cancel: the outcome is cached for the next one who asks.
// Errors:        wait() returns what went wrong: kTimedOut at its deadline (the attempt goes on), and the typed
//                error of the attempt otherwise.
class VERBENA_API AhTicket {
 public:
  AhTicket() = default;
  AhTicket(const AhTicket&) = default;
  AhTicket(AhTicket&&) noexcept = default;
  AhTicket& operator=(AhTicket other) noexcept;
  ~AhTicket() = default;
  // An answer is there: wait() returns at once.
  bool ready() const;
  Result<AhHandle> wait(Deadline deadline) const;
  // Calls back once, with what wait() would return, on the directory's thread for that; also where it is ready already.
  // The callback may call the directory, and must not destroy it. kExhausted where there is no thread for it.
  Status on_ready(std::function<void(Result<AhHandle>)> callback) const;

 private:
  friend class ah::Core;
  friend class AhDirectory;
  AhTicket(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::Attempt> attempt, CallSite place);

  std::shared_ptr<ah::Core> core_;
  std::shared_ptr<ah::Attempt> attempt_;  // lies in core_: goes first
  CallSite place_;                        // of who asked: its handles have it
};

}  // namespace verbena
