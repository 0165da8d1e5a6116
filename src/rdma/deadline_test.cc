#include "verbena/deadline.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(Deadline, ALongSpanIsFarAndNotOver) {
  const Deadline longest = Deadline::in(Deadline::Clock::duration::max());
  EXPECT_FALSE(longest.passed());
  EXPECT_GT(longest.remaining(), std::chrono::hours(24 * 364));
  EXPECT_LE(longest.remaining(), Deadline::kLongest);
  const Deadline past = Deadline::in(Deadline::Clock::duration::min());
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.remaining(), Deadline::Clock::duration::zero());
}

}  // namespace
}  // namespace verbena
