// Durations sorted into buckets whose width grows with the value, so that a run of any length needs little memory and a
// percentile is off by less than one part in 128. Smallest, largest and mean are exact.
//
// A value below 256 ns has a bucket of its own; above that, each power of two is cut into 128 buckets.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/instant.h"

namespace verbena::cli {

class LatencyDistribution {
 public:
  // A negative duration counts as 0.
  void add(Duration latency) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  // All of these are 0 where nothing was added.
  Duration min() const noexcept { return Duration(count_ == 0 ? 0 : min_ns_); }
  Duration max() const noexcept { return Duration(max_ns_); }
  Duration mean() const noexcept;
  // The least value that is not exceeded by `percent` of the values, 0 < percent <= 100: the nearest-rank percentile.
  Duration percentile(double percent) const noexcept;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::int64_t min_ns_ = 0;
  std::int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace verbena::cli
