#include "engine/reaction_point.h"

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

constexpr std::uint64_t kLine = 10'000'000'000;
constexpr Instant kStart{1'000'000'000};
constexpr auto kStage = ReactionPoint::kIncreaseInterval;
constexpr auto kOne = ReactionPoint::kOne;

ReactionPoint cut(int times, Instant at = kStart) {
  ReactionPoint point;
  for (int i = 0; i < times; ++i) {
    point.on_cnp(at, kLine);
    at = at + ReactionPoint::kLeastBetweenCuts;
  }
  return point;
}

TEST(ReactionPoint, DoesNotLimitUntilThereIsACnp) {
  ReactionPoint point;
  EXPECT_FALSE(point.is_limited());
  EXPECT_EQ(point.period(), 0U);
  point.advance(kStart);
  EXPECT_FALSE(point.is_limited());
}

// Alpha is 1 at first, so the first CNP halves the rate; it stays 1 while one comes after the other.
TEST(ReactionPoint, HalvesTheRateWhileCnpsFollowEachOther) {
  const ReactionPoint one = cut(1);
  EXPECT_EQ(one.rate(), kLine / 2);
  EXPECT_EQ(one.target(), kLine);
  EXPECT_EQ(one.alpha(), kOne);
  EXPECT_EQ(one.period(), byte_period(kLine / 2));
  const ReactionPoint three = cut(3);
  EXPECT_EQ(three.rate(), kLine / 8);
  EXPECT_EQ(three.target(), kLine / 4);
}

TEST(ReactionPoint, TakesACopyOfACnpOnce) {
  ReactionPoint point = cut(1);
  point.on_cnp(kStart, kLine);
  point.on_cnp(kStart + Duration(ReactionPoint::kLeastBetweenCuts.count() - 1), kLine);
  EXPECT_EQ(point.rate(), kLine / 2);
}

// Worked by hand with g = 1/256: after n intervals without a CNP alpha is (255/256)^n, and the next cut is half of it.
TEST(ReactionPoint, CutsLessTheLongerThereWasNone) {
  ReactionPoint point = cut(1);
  const Instant later = kStart + 4 * ReactionPoint::kAlphaInterval;
  point.advance(later);
  EXPECT_NEAR(static_cast<double>(point.alpha()) / kOne, 0.984467, 1e-4);
  point.on_cnp(later, kLine);
  EXPECT_NEAR(static_cast<double>(point.rate()), 5e9 * (1 - 0.984467 / 2), 1e6);
  // alpha = (1 - g) alpha + g
  EXPECT_NEAR(static_cast<double>(point.alpha()) / kOne, 0.984467 * 255 / 256 + 1.0 / 256, 1e-4);
}

TEST(ReactionPoint, GoesHalfTheWayBackAtEachStageOfFastRecovery) {
  ReactionPoint point = cut(2);  // rate 2.5, target 5 Gbit/s
  double rate = 2.5e9;
  for (unsigned stage = 1; stage <= ReactionPoint::kFastStages; ++stage) {
    point.advance(kStart + ReactionPoint::kLeastBetweenCuts + stage * kStage);
    rate = (rate + 5e9) / 2;
    EXPECT_NEAR(static_cast<double>(point.rate()), rate, 10) << stage;
    EXPECT_EQ(point.target(), kLine / 2) << stage;
  }
}

TEST(ReactionPoint, ThenRaisesTheTargetStepByStep) {
  ReactionPoint point = cut(2);
  const Instant recovered = kStart + ReactionPoint::kLeastBetweenCuts + ReactionPoint::kFastStages * kStage;
  for (unsigned more = 1; more <= 10; ++more) {
    point.advance(recovered + more * kStage);
    EXPECT_EQ(point.target(), kLine / 2 + more * (kLine / ReactionPoint::kAdditivePart));
  }
}

TEST(ReactionPoint, RaisesItFasterWhereTimeAndBytesBothHavePassed) {
  ReactionPoint point = cut(2);
  for (unsigned i = 0; i < ReactionPoint::kFastStages; ++i) point.on_sent(ReactionPoint::kIncreaseBytes);
  EXPECT_EQ(point.target(), kLine / 2) << "bytes alone are fast recovery, too";
  point.advance(kStart + ReactionPoint::kLeastBetweenCuts + ReactionPoint::kFastStages * kStage);
  EXPECT_EQ(point.target(), kLine / 2);
  point.on_sent(ReactionPoint::kIncreaseBytes);  // 6 stages of bytes, 5 of time: additive
  const std::uint64_t additive = kLine / 2 + kLine / ReactionPoint::kAdditivePart;
  EXPECT_EQ(point.target(), additive);
  point.advance(kStart + ReactionPoint::kLeastBetweenCuts + (ReactionPoint::kFastStages + 1) * kStage);
  EXPECT_EQ(point.target(), additive + kLine / ReactionPoint::kHyperPart) << "6 of each";
  point.advance(kStart + ReactionPoint::kLeastBetweenCuts + (ReactionPoint::kFastStages + 2) * kStage);
  EXPECT_EQ(point.target(), additive + 2 * (kLine / ReactionPoint::kHyperPart)) << "7 of time, 6 of bytes";
}

// A sender whose transport has no room yields the same packets again and again.
TEST(ReactionPoint, BytesThatWereTakenBackAreNoStage) {
  ReactionPoint point = cut(1);
  constexpr std::uint32_t kPacket = 4096;
  for (std::uint64_t bytes = 0; bytes < 3 * ReactionPoint::kIncreaseBytes; bytes += kPacket) {
    point.on_sent(kPacket);
    point.on_rewound(kPacket);
  }
  EXPECT_EQ(point.rate(), kLine / 2);
}

TEST(ReactionPoint, ACnpBeginsTheStagesAnew) {
  ReactionPoint point = cut(2);
  const Instant later = kStart + ReactionPoint::kLeastBetweenCuts + 20 * kStage;
  point.advance(later);
  const std::uint64_t rate = point.rate();
  EXPECT_GT(point.target(), kLine / 2);
  point.on_cnp(later, kLine);
  EXPECT_EQ(point.target(), rate);
  point.advance(later + kStage);
  EXPECT_EQ(point.target(), rate);
}

TEST(ReactionPoint, NeverFallsBelowItsLeastRate) {
  const ReactionPoint point = cut(100);
  EXPECT_EQ(point.rate(), kLine / ReactionPoint::kLeastPart);
  ReactionPoint slow_line;
  for (int i = 0; i < 100; ++i) slow_line.on_cnp(kStart + i * ReactionPoint::kAlphaInterval, 100'000'000);
  EXPECT_EQ(slow_line.rate(), 2'000'000U);
  EXPECT_NE(slow_line.period(), UINT32_MAX) << "a rate that can be said";
}

TEST(ReactionPoint, LetsGoOnceTheRateIsThatOfTheLine) {
  ReactionPoint point = cut(40);
  Instant now = kStart + 40 * ReactionPoint::kLeastBetweenCuts;
  std::uint64_t before = point.rate();
  int stages = 0;
  while (point.is_limited() && stages < 2'000) {
    now = now + kStage;
    point.advance(now);
    EXPECT_GE(point.rate(), before);
    before = point.rate();
    ++stages;
  }
  EXPECT_FALSE(point.is_limited());
  EXPECT_LT(stages, static_cast<int>(ReactionPoint::kAdditivePart) + 20);
  point.on_cnp(now, kLine);
  EXPECT_EQ(point.rate(), kLine / 2) << "as at the first";
}

TEST(ReactionPoint, ALongSilenceEndsTheLimitAtOnce) {
  ReactionPoint point = cut(40);
  point.advance(kStart + std::chrono::hours(24));
  EXPECT_FALSE(point.is_limited());
}

}  // namespace
}  // namespace verbena::engine
