// Completion queues, and waiting for them without missing a completion.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/deadline.h"
#include "verbena/device.h"

namespace verbena {

// Where completion queues put their events.
//
// Thread-safety: const functions, any thread.
// Ownership:     owns the ibv_comp_channel; kept by the queues made with it.
// Errors:        kExhausted where the process has no file descriptor left.
class VERBENA_API CompletionChannel : public VerbsOwner<ibv_comp_channel> {
 public:
  CompletionChannel() = default;
  static Result<CompletionChannel> create(const Context& context);
  // Readable when an event is there.
  int fd() const noexcept { return get() != nullptr ? get()->fd : -1; }

 private:
  using VerbsOwner::VerbsOwner;
};

// Thread-safety: poll() and wait() by one thread at a time.
// Ownership:     owns the ibv_cq and the events taken from its channel: they are acknowledged before it is destroyed.
//                A queue that wait()s has its channel to itself.
// Errors:        kExhausted from create() names the depth asked for and the device's limit.
class VERBENA_API CompletionQueue : public VerbsOwner<ibv_cq> {
 public:
  CompletionQueue() = default;
  // Without events: poll() only.
  static Result<CompletionQueue> create(const Context& context, int depth, CallSite place = CallSite::current());
  static Result<CompletionQueue> create(const Context& context, int depth, const CompletionChannel& channel,
                                        CallSite place = CallSite::current());

  // How many completions were put at the front of `out`; 0 where there is none now.
  Result<std::size_t> poll(std::span<ibv_wc> out) noexcept;
  // As poll(), but sleeps until there is one, or until the deadline (then 0). Arms the queue and polls once more before
  // it sleeps: a completion between the last poll and the arming raises no event. Requires: made with a channel.
  Result<std::size_t> wait(std::span<ibv_wc> out, Deadline deadline);
  // Asks for one event at the next completion. For a caller with a loop of its own: arm, poll until empty, then sleep
  // on the channel's descriptor.
  Status arm(bool solicited_only = false);
  // Takes one event off the channel without waiting: true where there was one.
  Result<bool> take_event();

 private:
  struct Events;
  CompletionQueue(std::shared_ptr<VerbsObject<ibv_cq>> object, std::shared_ptr<Events> events)
      : VerbsOwner(std::move(object)), events_(std::move(events)) {}

  std::shared_ptr<Events> events_;  // shared with the queue's release, which acknowledges
};

}  // namespace verbena
