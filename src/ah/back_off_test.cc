#include "ah/back_off.h"

#include <limits>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace verbena::ah {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(BackOff, DoublesWithEachFailureUpToTheLongest) {
  EXPECT_EQ(back_off(100ms, 30s, 1, 0), 100ms);
  EXPECT_EQ(back_off(100ms, 30s, 2, 0), 200ms);
  EXPECT_EQ(back_off(100ms, 30s, 3, 0), 400ms);
  EXPECT_EQ(back_off(100ms, 30s, 9, 0), 25'600ms);
  EXPECT_EQ(back_off(100ms, 30s, 10, 0), 30s);
  EXPECT_EQ(back_off(100ms, 30s, std::numeric_limits<std::uint32_t>::max(), 0), 30s);
}

TEST(BackOff, HasUpToAnEighthMoreByLot) {
  constexpr std::uint64_t kSeed = 5;
  std::mt19937_64 lots(kSeed);
  for (std::uint32_t failures = 1; failures < 12; ++failures) {
    const nanoseconds least = back_off(100ms, 30s, failures, 0);
    std::set<nanoseconds> seen;
    for (int i = 0; i < 1000; ++i) {
      const nanoseconds span = back_off(100ms, 30s, failures, lots());
      EXPECT_GE(span, least);
      EXPECT_LT(span, least + least / 8);
      seen.insert(span);
    }
    EXPECT_GT(seen.size(), 500U) << "most of a thousand who failed together try at moments of their own";
  }
}

TEST(BackOff, NoneAndAYearStayWithinBounds) {
  EXPECT_EQ(back_off(0ns, 0ns, 1000, 77), 0ns);
  EXPECT_EQ(back_off(0ns, 1s, std::numeric_limits<std::uint32_t>::max(), 77), 0ns);
  constexpr nanoseconds kYear = std::chrono::hours(24 * 365);
  EXPECT_GE(back_off(kYear, kYear, std::numeric_limits<std::uint32_t>::max(), 1023), kYear);
  EXPECT_LT(back_off(kYear - 1ns, kYear, 2, 1023), kYear + kYear / 8);
}

}  // namespace
}  // namespace verbena::ah
