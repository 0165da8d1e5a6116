#include "cli/latency_distribution.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

TEST(LatencyDistribution, IsAllZeroWhereNothingWasAdded) {
  const LatencyDistribution empty;
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.min(), 0ns);
  EXPECT_EQ(empty.max(), 0ns);
  EXPECT_EQ(empty.mean(), 0ns);
  EXPECT_EQ(empty.percentile(99), 0ns);
}

TEST(LatencyDistribution, OneValueIsEveryPercentile) {
  LatencyDistribution one;
  one.add(123456789ns);
  for (const double percent : {0.001, 50.0, 99.9, 100.0}) EXPECT_EQ(one.percentile(percent), 123456789ns) << percent;
  EXPECT_EQ(one.min(), 123456789ns);
  EXPECT_EQ(one.mean(), 123456789ns);
}

TEST(LatencyDistribution, SmallValuesAreExact) {
  LatencyDistribution latency;
  for (int i = 1; i <= 100; ++i) latency.add(Duration(i));
  EXPECT_EQ(latency.percentile(1), 1ns);
  EXPECT_EQ(latency.percentile(50), 50ns);
  EXPECT_EQ(latency.percentile(99), 99ns);
  EXPECT_EQ(latency.percentile(99.9), 100ns);
  EXPECT_EQ(latency.percentile(100), 100ns);
}

TEST(LatencyDistribution, NegativeCountsAsZero) {
  LatencyDistribution latency;
  latency.add(-5ns);
  EXPECT_EQ(latency.min(), 0ns);
  EXPECT_EQ(latency.max(), 0ns);
  EXPECT_EQ(latency.count(), 1U);
}

TEST(LatencyDistribution, HoldsTheLargestDuration) {
  LatencyDistribution latency;
  latency.add(Duration::max());
  latency.add(1ns);
  EXPECT_EQ(latency.max(), Duration::max());
  EXPECT_EQ(latency.percentile(100), Duration::max());
  EXPECT_EQ(latency.percentile(50), 1ns);
}

TEST(LatencyDistribution, PercentilesAreOffByLessThanOnePartIn128) {
  constexpr unsigned kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(0, 40);
  std::vector<std::int64_t> values;
  LatencyDistribution latency;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<std::int64_t>(std::exp2(exponent(random))));
    latency.add(Duration(values.back()));
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
    const auto exact = static_cast<double>(values[rank - 1]);
    const auto told = static_cast<double>(latency.percentile(percent).count());
    EXPECT_GE(told, exact) << percent;
    EXPECT_LE(told, exact * (1 + 1.0 / 128) + 1) << percent;
  }
}

TEST(LatencyDistribution, MeanIsExact) {
  LatencyDistribution latency;
  latency.add(1000ns);
  latency.add(3001ns);
  EXPECT_EQ(latency.mean(), 2000ns);
}

}  // namespace
}  // namespace verbena::cli
