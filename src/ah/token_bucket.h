// So many in a second, and so many at once. Pure: time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace verbena::ah {

// Thread-safety: none.
class TokenBucket {
 public:
  static constexpr std::uint64_t kMostPerSecond = 1'000'000'000;  // beyond it the rate is this

  // A rate of 0: without limit. A burst of 0 is taken as 1, and one beyond what time can count as that.
  TokenBucket(std::uint64_t per_second, std::uint64_t burst)
      : step_ns_(per_second == 0 ? 0 : kSecond_ns / static_cast<std::int64_t>(std::min(per_second, kMostPerSecond))),
        depth_ns_(step_ns_ *
                  static_cast<std::int64_t>(std::clamp<std::uint64_t>(
                      burst, 1, static_cast<std::uint64_t>(kDeepest_ns / std::max<std::int64_t>(1, step_ns_))))) {}

  // 0: taken. Else nothing was taken, and the nanoseconds until there will be one.
  std::int64_t take(std::int64_t now) noexcept {
    if (step_ns_ == 0) return 0;
    // The moment at which the bucket would be full again: it moves by a step for each token.
    const std::int64_t full_at = std::max(full_at_ns_, now) + step_ns_;
    if (full_at - now > depth_ns_) return full_at - now - depth_ns_;
    full_at_ns_ = full_at;
    return 0;
  }
  // One that was taken and not used.
  void put_back() noexcept { full_at_ns_ -= step_ns_; }

 private:
  static constexpr std::int64_t kSecond_ns = 1'000'000'000;
  static constexpr std::int64_t kDeepest_ns = std::numeric_limits<std::int64_t>::max() / 4;

  std::int64_t step_ns_;
  std::int64_t depth_ns_;
  std::int64_t full_at_ns_ = 0;
};

}  // namespace verbena::ah
