#include "cli/spin_budget.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

Duration limit_after(Duration waited) {
  SpinBudget budget;
  for (int i = 0; i < 200; ++i) budget.on_wait(waited);
  return budget.limit();
}

TEST(SpinBudget, IsShortAtFirst) {
  EXPECT_EQ(SpinBudget().limit(), SpinBudget::kShort);
}

TEST(SpinBudget, CoversWhatUsuallyComesSoon) {
  EXPECT_EQ(limit_after(1us), SpinBudget::kShort);
  EXPECT_NEAR(static_cast<double>(limit_after(35us).count()), 70'000, 100);
}

TEST(SpinBudget, IsShortWhereItComesLate) {
  EXPECT_EQ(limit_after(41us), SpinBudget::kShort);
  EXPECT_EQ(limit_after(10ms), SpinBudget::kShort);
}

TEST(SpinBudget, ForgetsAPause) {
  SpinBudget budget;
  budget.on_wait(1h);
  for (int i = 0; i < 32; ++i) budget.on_wait(30us);
  EXPECT_GT(budget.limit(), 60us);
}

TEST(SpinBudget, DoesNotGrowByItsOwnDoing) {
  // Two ends on one processor: each waits as long as the other polls, and a switch.
  SpinBudget left;
  SpinBudget right;
  for (int i = 0; i < 1000; ++i) {
    const Duration round_trip = left.limit() + right.limit() + 3us;
    left.on_wait(round_trip);
    right.on_wait(round_trip);
  }
  EXPECT_EQ(left.limit(), SpinBudget::kShort);
  EXPECT_EQ(right.limit(), SpinBudget::kShort);
}

}  // namespace
}  // namespace verbena::cli
