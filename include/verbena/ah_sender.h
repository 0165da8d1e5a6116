// The data path of a directory: one sender for each queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <infiniband/verbs.h>

#include "verbena/ah_handle.h"
#include "verbena/ah_report.h"
#include "verbena/deadline.h"
#include "verbena/destination.h"
#include "verbena/export.h"

namespace verbena {

namespace ah {
class Core;
struct SendQueue;
}  // namespace ah

// The data path: gives the address for each work request of one send queue, and learns of completions.
//
// Positions: each next() that succeeds is one work request, posted in that order. Completions are told by position,
// which covers all before it, as a completion does, so that unsignaled sends need no care; or by count, in which the
// unsignaled sends before a completion must be counted too.
//
// Thread-safety: one owner thread at a time (the one that posts to the queue pair); different senders share
//                nothing that either writes on a hit.
// Ownership:     move-only. Destroy it when all is completed (close() says whether it is); or call drained() after
//                destroying the queue pair, before this. What it does not know to be completed is reported by the
//                destructor (release_failure.h), stays on the device for good, and is named by the directory at its
//                end.
// Errors:        nullptr: not ready; AhDirectory::acquire() says why. An empty one (by default, or moved from) finds
//                nothing and counts nothing.
class VERBENA_API AhSender {
 public:
  AhSender() = default;
  AhSender(AhSender&&) noexcept = default;
  AhSender& operator=(AhSender&& other) noexcept;
  ~AhSender();

  // The address for the next work request. No lock, no system call, no allocation. A handle of another directory gives
  // nullptr.
  ibv_ah* next(const Destination& destination) noexcept;
  ibv_ah* next(const AhHandle& handle) noexcept;

  // The address of who sent a received datagram, for the reply: as next(reply_to(...)), but it takes no lock and never
  // calls the device. What the port's own addresses are the directory reads in the background. nullptr: not ready, or
  // the 40 bytes tell no sender: AhDirectory::reply_to() and acquire() say why.
  ibv_ah* next_reply(const ibv_wc& completion, std::span<const std::byte, 40> grh) noexcept;

  // The position of the work request that the last next() gave an address to; the first is 1. Fits a wr_id.
  std::uint64_t position() const noexcept;
  // Work requests that have taken an address and not completed.
  std::uint64_t outstanding() const noexcept;

  // The last `count` addresses were not posted after all (ibv_post_send refused).
  void retract(std::uint64_t count) noexcept;
  // `count` more work requests have completed, with whatever status; unsignaled ones before them are to be counted.
  void completed(std::uint64_t count) noexcept;
  // All up to this position have, signaled or not.
  void completed_through(std::uint64_t position) noexcept;
  // The queue pair was destroyed or reset: nothing is in flight.
  void drained() noexcept;

  // No more addresses from now on: next() gives nullptr. Waits until all that took one has completed, at most until the
  // deadline, and returns what has not: empty where all is given back. `poll` is called again and again meanwhile, once
  // at least; it is to take completions from the queue and tell them. Without it one other thread may tell them. May be
  // called again.
  AhSenderRest close(Deadline deadline, const std::function<void()>& poll = {});

 private:
  friend class ah::Core;
  AhSender(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::SendQueue> queue) noexcept;

  std::shared_ptr<ah::Core> core_;
  std::shared_ptr<ah::SendQueue> queue_;  // for next(); null from close() on
  std::shared_ptr<ah::SendQueue> work_;   // the same, for completions
};

}  // namespace verbena
