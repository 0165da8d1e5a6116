// Reads a device's asynchronous events for all who want them.
//
// A context has one stream of events, and each event goes to one reader: two readers steal each other's. So there is
// one watcher for a context in a process, shared, and it hands every event to every subscriber.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <infiniband/verbs.h>

#include "verbena/result.h"

namespace verbena::rdma {

// Thread-safety: any thread.
// Ownership:     shared; owns its thread, which ends with the last holder. The context must stay open until then.
// Errors:        kExhausted where the process has no descriptor or thread left.
class EventWatcher {
 public:
  // Called on the watcher's thread before the event is acknowledged; must not wait, nor unsubscribe.
  using Subscriber = std::function<void(const ibv_async_event&)>;
  using Ticket = std::uint64_t;

  // The one of this context; started where there is none. Waits for one that is just ending.
  static Result<std::shared_ptr<EventWatcher>> of(ibv_context* context);

  EventWatcher(ibv_context* context, int wake_fd);
  EventWatcher(const EventWatcher&) = delete;
  EventWatcher& operator=(const EventWatcher&) = delete;
  ~EventWatcher();

  Ticket subscribe(Subscriber subscriber);
  // When it returns, the subscriber is not running and will not run again.
  void unsubscribe(Ticket ticket);

 private:
  void run();
  void give_back_stream();
  // False where the stream has ended.
  bool deliver_one();

  ibv_context* context_;
  int wake_fd_;
  int old_flags_;
  std::mutex mutex_;
  std::map<Ticket, Subscriber> subscribers_;  // guarded by mutex_
  Ticket next_ = 1;                           // guarded by mutex_
  std::thread thread_;
};

}  // namespace verbena::rdma
