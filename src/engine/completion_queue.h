// A completion queue: completions in the order in which they were pushed, until they are polled.
//
// It wakes its owner once for each arming (spec/queue-pairs, section 2): on any completion, or on a solicited one only;
// an unsuccessful completion counts as solicited. A completion that finds the queue full is lost, and the queue is
// overrun for ever after, as on hardware: it tells what it held, takes nothing more, and can only be destroyed. The
// owner then raises CQ_ERR and takes the queue pairs attached to it to the error state; none of them can be brought up
// again (QueuePair::modify).
//
// Thread-safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/qpn.h"
#include "base/ring.h"
#include "engine/completion.h"
#include "verbena/result.h"

namespace verbena::engine {

class CompletionQueue {
 public:
  enum class Arm : std::uint8_t { kNone, kSolicited, kAny };
  struct Pushed {
    bool stored = false;   // false: the queue was full, or was overrun before
    bool notify = false;   // tell the completion channel, once
    bool delayed = false;  // call on_period_over() when the period of moderation is over
  };
  struct Options {
    bool stamped = false;         // a time is kept for each completion
    bool ignore_overrun = false;  // what finds the queue full is lost, and that is all
  };

  explicit CompletionQueue(std::uint32_t capacity) : CompletionQueue(capacity, Options{}) {}
  CompletionQueue(std::uint32_t capacity, Options options)
      : ring_(capacity), stamps_(options.stamped ? capacity : 0), options_(options) {}

  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(ring_.capacity()); }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ring_.size()); }
  bool empty() const noexcept { return ring_.empty(); }
  bool overrun() const noexcept { return overrun_; }

  // `stamp`: when it happened; kept where the queue is stamped.
  Pushed push(const Completion& completion, Place place = {}, std::uint64_t stamp = 0) noexcept;
  // Moves completions to the front of `into`, and gives their places back; how many.
  std::size_t poll(std::span<Completion> into) noexcept;
  // The oldest with its time, 0 where none is kept. False where the queue is empty.
  bool poll_one(Completion& completion, std::uint64_t& stamp) noexcept;
  // Once armed, the queue wakes after `count` completions that would wake it, or when `has_period` and the owner says
  // that the period since the first of them is over. A count of 0 is without end; 1 wakes at the first, as ever.
  void moderate(std::uint16_t count, bool has_period) noexcept;
  // True where completions wait for more of them: tell the completion channel, once.
  bool on_period_over() noexcept;
  // One shot. Armed for any stays armed for any.
  void arm(Arm arm) noexcept;
  // EINVAL below the number of completions pending, for 0 and after an overrun; ENOMEM where no memory is left.
  Status resize(std::uint32_t capacity);
  // Takes out the completions of a queue pair that was destroyed or reset.
  void remove_of(Qpn qpn) noexcept;

 private:
  // The queue is armed, and this completion would wake it.
  void wake(Pushed& pushed) noexcept;

  struct alignas(64) Held {
    Completion completion;
    Place place;
  };

  Ring<Held> ring_;
  Arm armed_ = Arm::kNone;
  bool overrun_ = false;
  bool has_period_ = false;
  std::uint16_t wake_count_ = 1;  // how many make it wake; 0: only the period does
  std::uint32_t waiting_ = 0;     // would have woken it since it was armed, but for the moderation
  Ring<std::uint64_t> stamps_;    // beside ring_, where the queue is stamped
  const Options options_;
};

}  // namespace verbena::engine
