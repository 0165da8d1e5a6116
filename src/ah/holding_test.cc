#include "ah/holding.h"

#include <gtest/gtest.h>

namespace verbena::ah {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class HoldingRecords : public ::testing::Test {
 protected:
  Holding& take(std::int64_t now, CallSite place) { return holdings_.take(this, &first_, place, now); }
  static void drop(Holding& record) { record.count.fetch_sub(1); }
  std::vector<const Holding*> held() const {
    std::vector<const Holding*> found;
    holdings_.for_each(this, &first_, [&](const Holding& record) { found.push_back(&record); });
    return found;
  }

  Holding first_;
  Holdings holdings_;
};

TEST_F(HoldingRecords, OnePlaceAtOneTimeIsOneRecord) {
  const auto place = CallSite::current();
  EXPECT_EQ(&take(kSecond, place), &first_);
  EXPECT_EQ(&take(kSecond + kSecond / 2, place), &first_);
  EXPECT_EQ(first_.count, 2U);
}

TEST_F(HoldingRecords, AnotherPlaceIsAnotherRecord) {
  take(kSecond, CallSite::current());
  take(kSecond, CallSite::current());
  ASSERT_EQ(held().size(), 2U);
  EXPECT_NE(held()[0]->place->line(), held()[1]->place->line());
}

// One who holds on for long, and others who come and go at the same place: each is as old as it is, to about a second.
TEST_F(HoldingRecords, HandlesThatOverlapDoNotAgeEachOther) {
  const auto place = CallSite::current();
  Holding& kept = take(0, place);
  Holding* last = nullptr;
  for (std::int64_t now = 5; now < 1000; ++now) {
    Holding& next = take(now * kSecond, place);
    if (last != nullptr) drop(*last);
    last = &next;
    EXPECT_NE(last, &kept);
    EXPECT_LE(held_for(last->since, now * kSecond), std::chrono::milliseconds(1100));
  }
  EXPECT_EQ(kept.count, 1U);
  EXPECT_LE(held().size(), 3U);
}

TEST_F(HoldingRecords, ARecordOfNobodyIsTakenAgain) {
  drop(take(0, CallSite::current()));
  EXPECT_TRUE(held().empty());
  EXPECT_EQ(&take(kSecond, CallSite::current()), &first_);
}

TEST_F(HoldingRecords, TimesAreRightWhereTheTicksWrap) {
  const std::int64_t wrap = std::int64_t{1} << (32 + kHoldingTickBits);
  const Holding& record = take(wrap - kSecond, CallSite::current());
  const auto held = held_for(record.since, wrap + kSecond);
  EXPECT_NEAR(std::chrono::duration<double>(held).count(), 2.0, 0.02);
}

}  // namespace
}  // namespace verbena::ah
