#include "cli/latency_distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace verbena::cli {
namespace {

constexpr int kSubBits = 7;  // 128 buckets a power of two
constexpr std::uint64_t kLinear = std::uint64_t{2} << kSubBits;
constexpr std::size_t kBucketCount = (64 - kSubBits) << kSubBits;

std::size_t bucket_of(std::uint64_t value) noexcept {
  if (value < kLinear) return static_cast<std::size_t>(value);
  const int shift = static_cast<int>(std::bit_width(value)) - 1 - kSubBits;
  return (static_cast<std::size_t>(shift) << kSubBits) + static_cast<std::size_t>(value >> shift);
}

// The largest value of the bucket.
std::uint64_t top_of(std::size_t bucket) noexcept {
  if (bucket < kLinear) return bucket;
  const std::size_t shift = (bucket >> kSubBits) - 1;
  const std::uint64_t mantissa = bucket - (shift << kSubBits);
  return ((mantissa + 1) << shift) - 1;
}

}  // namespace

void LatencyDistribution::add(Duration latency) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(latency.count(), 0);
  if (buckets_.empty()) buckets_.resize(kBucketCount);
  ++buckets_[bucket_of(static_cast<std::uint64_t>(ns))];
  min_ns_ = count_ == 0 ? ns : std::min(min_ns_, ns);
  max_ns_ = std::max(max_ns_, ns);
  sum_ns_ += static_cast<double>(ns);
  ++count_;
}

Duration LatencyDistribution::mean() const noexcept {
  return Duration(count_ == 0 ? 0 : static_cast<std::int64_t>(sum_ns_ / static_cast<double>(count_)));
}

Duration LatencyDistribution::percentile(double percent) const noexcept {
  if (count_ == 0) return Duration(0);
  const double exact = std::ceil(percent / 100.0 * static_cast<double>(count_));
  const auto rank = static_cast<std::uint64_t>(std::clamp(exact, 1.0, static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) {
      return Duration(std::clamp(static_cast<std::int64_t>(top_of(bucket)), min_ns_, max_ns_));
    }
  }
  return Duration(max_ns_);
}

}  // namespace verbena::cli
