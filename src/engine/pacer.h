// Keeps a queue pair at a rate: the static rate of the address handles it sends to, or what congestion leaves.
//
// A virtual clock of when the link of that rate would be free again. Sending moves it by the time that the packet
// takes; a packet may go when the clock has come. The clock may lag behind real time by kBurst, so a caller that wakes
// a little late still reaches the rate, and no further, so idleness is not saved up.
//
// Thread-safety: none; the send side of a queue pair owns it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/instant.h"
#include "engine/rate.h"

namespace verbena::engine {

class Pacer {
 public:
  static constexpr Duration kBurst{20'000};

  bool may_send(Instant now) const noexcept { return free_at_ <= now; }
  Instant free_at() const noexcept { return free_at_; }

  // What the packet cost.
  Duration on_sent(Instant now, BytePeriod period, std::uint32_t bytes) noexcept {
    const Instant earliest{now.ns - kBurst.count()};
    const Duration spent = cost(period, bytes);
    free_at_ = std::max(free_at_, earliest) + spent;
    return spent;
  }
  // Undoes on_sent() for a packet that did not go after all.
  void refund(BytePeriod period, std::uint32_t bytes) noexcept { refund(cost(period, bytes)); }
  void refund(Duration spent) noexcept { free_at_.ns -= spent.count(); }

 private:
  // Rounded up, so that the rate is never exceeded.
  static Duration cost(BytePeriod period, std::uint32_t bytes) noexcept {
    constexpr std::uint64_t kRoundUp = (std::uint64_t{1} << kBytePeriodShift) - 1;
    return Duration(static_cast<std::int64_t>((std::uint64_t{period} * bytes + kRoundUp) >> kBytePeriodShift));
  }

  Instant free_at_{INT64_MIN / 2};
};

}  // namespace verbena::engine
