// The address-handle directory of one protection domain and port: address handles made off the data path, shared, found
// again without a lock, and destroyed only when nothing that was posted names them.
//
// An address handle (AH) looks like a struct and is a lease on a path: making one may resolve a neighbour and block for
// seconds, its source GID may go away, and a device has a limited number. So an application asks for a Destination:
//
//   auto directory = AhDirectory::create(domain, 1);
//   auto handle = directory->acquire(destination, Deadline::in(2s));   // waits: before the traffic starts
//   auto sender = directory->make_sender();                            // one for each queue pair
//   ...
//   ibv_ah* ah = sender->next(*handle);     // or next(destination): a few nanoseconds, no lock, no system call
//   post_send(ah, ...); ...
//   sender->completed(1);                   // when the send has completed
//
// docs/address-handles.md tells the whole story.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/ah_event.h"
#include "verbena/ah_handle.h"
#include "verbena/ah_report.h"
#include "verbena/ah_sender.h"
#include "verbena/call_site.h"
#include "verbena/deadline.h"
#include "verbena/destination.h"
#include "verbena/export.h"
#include "verbena/neighbour.h"
#include "verbena/network_change.h"
#include "verbena/protection_domain.h"
#include "verbena/rate.h"
#include "verbena/result.h"
#include "verbena/route.h"

namespace verbena {

class Tenant;

// Times are 0 or more. More than a year is taken as a year, but for device_lag, which has its own bound.
struct AhDirectoryOptions {
  std::string name;                                              // in reports; "" stands for the device's name and port
  std::size_t max_entries = 16384;                               // lowered to the device's max_ah where that is less
  std::size_t max_negative = 1024;                               // destinations remembered as failed
  unsigned creators = 4;                                         // threads that make and destroy address handles
  std::chrono::nanoseconds idle_age = std::chrono::minutes(10);  // unused that long: given back; 0: never
  std::chrono::nanoseconds first_back_off = std::chrono::milliseconds(100);  // after the first failure; then doubled
  std::chrono::nanoseconds max_back_off = std::chrono::seconds(30);
  // What the destructor waits for work in flight. Beyond it, however long that takes, it waits for what a creator has
  // under way on the device: a creation that resolves a neighbour may take seconds.
  std::chrono::nanoseconds close_grace = std::chrono::seconds(1);
  // A handle held longer than this when the directory is destroyed is reported, with the place that took it. A lease
  // always is.
  std::chrono::nanoseconds leak_age = std::chrono::minutes(1);
  std::uint8_t reply_hop_limit = 64;
  // True: a thread reads the device's asynchronous events (one for all directories of a context). False: the
  // application reads them and hands each to on_async_event().
  bool watch_async_events = true;
  // True: `verbena ah` of the same user can look at it from outside, while it runs. Costs a thread a process, which
  // sleeps. Where the process has no descriptor or thread left for it, it is not shown.
  bool visible = true;
  // True: a thread reads rtnetlink (one for a process and network namespace). False: the application hands what it
  // learns to on_network_change().
  bool watch_network = true;
  // Older than this, an address handle is made anew although nothing is known against it; 0: never. The last resort,
  // for networks whose changes this host cannot see.
  std::chrono::nanoseconds max_age{0};
  // At most once in that time a next hop that the kernel has forgotten is resolved again: its addresses are made anew.
  std::chrono::nanoseconds forgotten_age = std::chrono::seconds(30);
  // How far the device may lag behind the host's kernel. A source whose address the kernel removed is not used for that
  // long although the device's GID table still shows it, and the table is read once more when it is over. Up to an
  // hour.
  std::chrono::nanoseconds device_lag = std::chrono::milliseconds(200);
  RouteLookup routes = look_up_route;
  // Tells the MAC address that the device froze. Empty: unknown, and each notice about a next hop makes its addresses
  // anew.
  NeighbourLookup neighbours = look_up_neighbour;
};

// Thread-safety: all functions, any thread. What waits: acquire(), AhTicket::wait(), close() and the destructor;
//                make_sender() of a tenant whose memory is full, up to 200 ms, which may destroy address handles of the
//                tenant's other directories meanwhile; unsubscribe(), while the subscriber runs. What calls the device:
//                create(), close() and the destructor; make_sender(), as said; reply_to(), after an event, to read the
//                GID table; effective() and paced(), for the speed of the port. Nothing else waits or calls it.
// Fork:          a child has none of the threads, and no use of the device. It must neither use nor destroy a
//                directory, a handle, a lease or a sender that it inherited: end it by _exit() or exec.
// Ownership:     move-only. Owns its address handles and its threads; keeps the ProtectionDomain, or requires that the
//                ibv_pd outlives it. Handles, leases, tickets and senders may outlive it: they then find nothing. An
//                address handle that a lease or work in flight kept beyond its end is destroyed with the last of them
//                where it keeps the ProtectionDomain; made from an ibv_pd, it stays on the device, since the ibv_pd may
//                be gone by then.
// Errors:        typed, in words, each with the attribute that is wrong and what to do. An empty one (by default, or
//                moved from) has nothing and gives kInvalidArgument. Callbacks must not throw: what they throw ends the
//                process.
class VERBENA_API AhDirectory {
 public:
  static Result<AhDirectory> create(const ProtectionDomain& domain, std::uint8_t port, AhDirectoryOptions options = {});
  // For an application with verbs objects of its own. The domain must outlive the directory.
  static Result<AhDirectory> create(ibv_pd* domain, std::uint8_t port, AhDirectoryOptions options = {});

  AhDirectory() = default;
  AhDirectory(AhDirectory&&) noexcept = default;
  AhDirectory& operator=(AhDirectory&& other) noexcept;
  // close(close_grace), and the end of what is under way on the device; what is left is reported (release_failure.h).
  ~AhDirectory();

  // Waits until the destination is ready, at most until the deadline. One creation however many ask.
  // kInvalidArgument, kUnreachable, kNotFound, kTimedOut, kExhausted, kPermission, kUnavailable (closed, or the port or
  // its GIDs are gone). After a failure the same answer comes at once until the back-off is over.
  // `place`, here and below: what leaks() and the report at the end name for the handle, its copies and its ticket's.
  Result<AhHandle> acquire(const Destination& destination, Deadline deadline, CallSite place = CallSite::current());
  AhTicket acquire_async(const Destination& destination, CallSite place = CallSite::current());
  // Asks for all of them; returns how many were not ready and are now on their way.
  std::size_t prewarm(std::span<const Destination> destinations);
  // What is ready now, without asking for it; empty where not. Takes a lock: senders use AhSender::next().
  AhHandle find(const Destination& destination, CallSite place = CallSite::current());

  // One for each queue pair of the directory's domain and port.
  Result<AhSender> make_sender(CallSite place = CallSite::current());

  // The sender of a received datagram, as a destination of this directory: source is the address it was sent to, the
  // hop limit is by policy. `grh` is what stands in front of the payload. The first call after an event reads the
  // device's GID table.
  Result<Destination> reply_to(const ibv_wc& completion, std::span<const std::byte, 40> grh) const;

  // kUnavailable where the destination has no address now.
  Result<EffectiveAddress> effective(const AhHandle& handle) const;
  // The destination with the static rate that keeps this port from flooding a slower one at the far end, where it names
  // no rate of its own. `far` as the peer tells it; 0: not known, and the rate stays the port's. A call into the
  // device; after close() none is made, and the port's speed counts as not known.
  Destination paced(Destination destination, PortSpeed far) const;
  AhStats stats() const;
  std::vector<AhRow> rows() const;
  // Handles and leases held at least that long, by destination and place, the longest held first. Times are right to
  // about a second: what was taken at one place within one shares a row.
  std::vector<AhHolding> leaks(std::chrono::nanoseconds held_longer_than) const;
  const std::string& name() const;
  std::uint8_t port() const;

  // For an application that reads the device's events itself; call it before ibv_ack_async_event(). Events of other
  // ports are ignored.
  void on_async_event(const ibv_async_event& event);
  // What the change concerns is looked at again, and made anew only where it is no longer right; the old address serves
  // until then.
  void on_network_change(const NetworkChange& change);

  // Tells what happens from now on; an error where it is empty, or no thread can be made for it. The subscriber must
  // not destroy the directory. unsubscribe(): when it returns, the subscriber is not running and will not run again.
  using Subscription = std::uint64_t;
  Result<Subscription> subscribe(AhSubscriber subscriber);
  void unsubscribe(Subscription subscription);

  // Ends it: no more look-ups, creations end, and what is not in flight or leased is destroyed. Waits for work in
  // flight until the deadline. May be called again, to try what was left.
  AhLeftover close(Deadline deadline);

 private:
  friend class Tenant;
  explicit AhDirectory(std::shared_ptr<ah::Core> core) : core_(std::move(core)) {}

  std::shared_ptr<ah::Core> core_;
};

}  // namespace verbena
