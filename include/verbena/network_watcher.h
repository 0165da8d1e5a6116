// Reads rtnetlink for all who want to know that the network changed under an address handle.
//
// No verbs event tells that a neighbour got another MAC address, that a route moved or that an interface was renamed;
// the kernel tells it on rtnetlink. One watcher for a process and network namespace, shared, hands each notice to
// every subscriber as a NetworkChange. Its thread sleeps in poll(2): an idle network costs nothing.
//
// What it reads: links, IPv4 and IPv6 addresses, neighbours, routes, routing rules and next-hop objects. A notice that
// says nothing new is delivered as it came; routes of multicast, broadcast and anycast and routes cloned from others
// are not. A route is delivered with netdev 0, since it may have taken traffic from any interface; a rule or a next-hop
// object also without an address, since it may concern any. Where the kernel had to drop notices there is one kLost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "verbena/export.h"
#include "verbena/network_change.h"
#include "verbena/result.h"

namespace verbena {

// Thread-safety: any thread.
// Ownership:     shared; owns its socket and its thread, which end with the last holder. Let go of the last holder
//                outside of a subscriber.
// Errors:        kExhausted where the process has no descriptor or thread left; kUnsupported where the system has no
//                rtnetlink.
class VERBENA_API NetworkWatcher {
 public:
  using Ticket = std::uint64_t;
  // Called on the watcher's thread, one change at a time. Must not wait: notices pile up meanwhile, and are lost.
  using Subscriber = std::function<void(const NetworkChange&)>;

  // The one of the network namespace of the calling thread; started where there is none. From when it returns, no
  // change is missed.
  static Result<std::shared_ptr<NetworkWatcher>> of_this_namespace();

  NetworkWatcher(const NetworkWatcher&) = delete;
  NetworkWatcher& operator=(const NetworkWatcher&) = delete;
  ~NetworkWatcher();

  // An empty one is told nothing.
  Ticket subscribe(Subscriber subscriber);
  // When it returns, the subscriber is not running and will not run again; from within the subscriber itself, it will
  // not run again.
  void unsubscribe(Ticket ticket);

 private:
  struct State;
  explicit NetworkWatcher(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace verbena
