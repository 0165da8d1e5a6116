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
    bool stored = false;  // false: the queue was full, or was overrun before
    bool notify = false;  // tell the completion channel, once
  };

  explicit CompletionQueue(std::uint32_t capacity) : ring_(capacity) {}

  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(ring_.capacity()); }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ring_.size()); }
  bool empty() const noexcept { return ring_.empty(); }
  bool overrun() const noexcept { return overrun_; }

  Pushed push(const Completion& completion, Place place = {}) noexcept;
  // Moves completions to the front of `into`, and gives their places back; how many.
  std::size_t poll(std::span<Completion> into) noexcept;
  // One shot. Armed for any stays armed for any.
  void arm(Arm arm) noexcept;
  // EINVAL below the number of completions pending, for 0 and after an overrun; ENOMEM where no memory is left.
  Status resize(std::uint32_t capacity);
  // Takes out the completions of a queue pair that was destroyed or reset.
  void remove_of(Qpn qpn) noexcept;

 private:
  struct alignas(64) Held {
    Completion completion;
    Place place;
  };

  Ring<Held> ring_;
  Arm armed_ = Arm::kNone;
  bool overrun_ = false;
};

}  // namespace verbena::engine
