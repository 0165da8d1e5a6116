// How long a loop polls before it sleeps. Pure: waits are arguments.
//
// Polling is worth it where what it waits for comes sooner than sleeping and waking up would take. Where it comes later
// (a far network, or the other end waits for this very processor) polling only keeps the processor from others. So:
// twice as long as it usually takes, and hardly at all where that is long. The limits are apart by more than what
// polling itself adds when both ends share a processor, so that a budget does not grow by its own doing.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/instant.h"

namespace verbena::cli {

class SpinBudget {
 public:
  static constexpr Duration kShort = std::chrono::microseconds(20);
  static constexpr Duration kLong = std::chrono::microseconds(80);

  // What was waited for came after `waited`. A moving average over about eight of them, in which a pause counts as a
  // millisecond: it is soon forgotten.
  void on_wait(Duration waited) noexcept { typical_ += (std::min(waited, kPause) - typical_) / 8; }

  // For the next wait: between kShort and kLong.
  Duration limit() const noexcept {
    const Duration twice = typical_ * 2;
    return twice > kLong ? kShort : std::max(twice, kShort);
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(1);

  Duration typical_{0};
};

}  // namespace verbena::cli
