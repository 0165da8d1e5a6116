#include "verbena/rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kGiga = 1'000'000'000;

PortSpeed gigabits(std::uint64_t count) {
  return {.bits_per_second = count * kGiga};
}

// The library beside us is the measure: its numbers are the signalled ones, at most 7% above the nominal.
TEST(Rate, EachValueOfTheHeaderIsKnown) {
  int known = 0;
  for (int value = 0; value < 32; ++value) {  // what the type can hold
    const auto rate = static_cast<ibv_rate>(value);
    const auto ours = bits_per_second(rate);
    const int theirs = ibv_rate_to_mbps(rate);
    if (!ours) {
      EXPECT_TRUE(value == 0 || value == 1 || theirs <= 0) << value;
      continue;
    }
    ++known;
    EXPECT_EQ(*parse_rate(to_string(rate).substr(0, to_string(rate).find(' ')) + "g"), rate);
    if (theirs > 0) {
      EXPECT_GE(static_cast<std::uint64_t>(theirs) * 1'000'000, *ours) << value;
      EXPECT_LE(static_cast<std::uint64_t>(theirs) * 1'000'000, *ours + *ours * 7 / 100) << value;
    }
  }
  EXPECT_EQ(known, 23);
}

TEST(Rate, APortsSpeedIsLanesTimesLaneSpeed) {
  EXPECT_EQ(port_speed(2, 32), gigabits(100));   // 4x EDR
  EXPECT_EQ(port_speed(1, 32), gigabits(25));    // 1x EDR: 25 Gbit/s Ethernet
  EXPECT_EQ(port_speed(2, 128), gigabits(400));  // 4x NDR
  EXPECT_EQ(port_speed(2, 256), gigabits(800));  // 4x XDR, by active_speed_ex
  EXPECT_EQ(port_speed(16, 64), gigabits(100));  // 2x HDR
  EXPECT_EQ(port_speed(2, 16), gigabits(56));    // 4x FDR
  EXPECT_EQ(port_speed(8, 4), gigabits(120));    // 12x QDR
  EXPECT_EQ(port_speed(1, 1), (PortSpeed{2'500'000'000}));
  EXPECT_EQ(port_speed(0, 32), PortSpeed{});
  EXPECT_EQ(port_speed(3, 32), PortSpeed{});
  EXPECT_EQ(port_speed(2, 3), PortSpeed{});
}

TEST(Rate, AboveThePortIsAWarningFarBelowANote) {
  EXPECT_EQ(advise_rate(IBV_RATE_MAX, gigabits(100)).severity, Severity::kGood);
  EXPECT_EQ(advise_rate(IBV_RATE_100_GBPS, gigabits(100)).severity, Severity::kGood);
  EXPECT_EQ(advise_rate(IBV_RATE_40_GBPS, gigabits(100)).severity, Severity::kGood);
  const RateAdvice above = advise_rate(IBV_RATE_200_GBPS, gigabits(100));
  EXPECT_EQ(above.severity, Severity::kWarning);
  EXPECT_THAT(above.text, HasSubstr("200 Gbit/s on a port of 100 Gbit/s"));
  const RateAdvice below = advise_rate(IBV_RATE_10_GBPS, gigabits(100));
  EXPECT_EQ(below.severity, Severity::kNote);
  EXPECT_THAT(below.text, HasSubstr("90%"));
  EXPECT_EQ(advise_rate(IBV_RATE_25_GBPS, gigabits(100)).severity, Severity::kNote) << "a quarter is far below";
  EXPECT_EQ(advise_rate(IBV_RATE_10_GBPS, PortSpeed{}).severity, Severity::kGood);
  EXPECT_EQ(advise_rate(static_cast<ibv_rate>(1), gigabits(100)).severity, Severity::kFailure);
}

TEST(Rate, APathIsAsFastAsItsSlowerEnd) {
  EXPECT_EQ(rate_for_path(gigabits(100), gigabits(25)), IBV_RATE_25_GBPS);
  EXPECT_EQ(rate_for_path(gigabits(100), gigabits(100)), IBV_RATE_MAX);
  EXPECT_EQ(rate_for_path(gigabits(25), gigabits(100)), IBV_RATE_MAX);
  EXPECT_EQ(rate_for_path(gigabits(100), PortSpeed{}), IBV_RATE_MAX);
  EXPECT_EQ(rate_for_path(PortSpeed{}, gigabits(40)), IBV_RATE_40_GBPS);
  EXPECT_EQ(rate_for_path(gigabits(100), gigabits(45)), IBV_RATE_40_GBPS);
  EXPECT_EQ(rate_for_path(gigabits(100), gigabits(1)), IBV_RATE_2_5_GBPS);
}

TEST(Rate, WhatIsNoneIsRefusedWithThoseThereAre) {
  for (const char* text : {"", "g", "25", "26g", "-25g", "25gg", "25 g", "nan", "nang", "infg", "1e1g"}) {
    const Result<ibv_rate> rate = parse_rate(text);
    ASSERT_FALSE(rate) << text;
    EXPECT_EQ(rate.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(rate.error().message, HasSubstr("2.5g, 5g, 10g"));
  }
  EXPECT_EQ(*parse_rate("max"), IBV_RATE_MAX);
  EXPECT_EQ(*parse_rate("2.5G"), IBV_RATE_2_5_GBPS);
}

}  // namespace
}  // namespace verbena
