#include "cli/figures.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

TEST(Figures, DurationsHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(format_duration(Duration(0)), "0 ns");
  EXPECT_EQ(format_duration(Duration(812)), "812 ns");
  EXPECT_EQ(format_duration(Duration(999)), "999 ns");
  EXPECT_EQ(format_duration(Duration(1000)), "1.00 us");
  EXPECT_EQ(format_duration(Duration(1'240)), "1.24 us");
  EXPECT_EQ(format_duration(Duration(20'000'000)), "20.0 ms");
  EXPECT_EQ(format_duration(Duration(999'600)), "1.00 ms");
  EXPECT_EQ(format_duration(Duration(3'500'000'000)), "3.50 s");
  EXPECT_EQ(format_duration(Duration(86'400'000'000'000)), "86400 s");
}

TEST(Figures, CountsHaveCommas) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(18446744073709551615U), "18,446,744,073,709,551,615");
}

TEST(Figures, RatesHaveThreeDigits) {
  EXPECT_EQ(format_rate(0), "0.00/s");
  EXPECT_EQ(format_rate(812.4), "812/s");
  EXPECT_EQ(format_rate(12'400), "12.4 k/s");
  EXPECT_EQ(format_rate(3.1e6), "3.10 M/s");
}

TEST(Figures, PercentagesNeverRoundToNoneOrAll) {
  EXPECT_EQ(format_percentage(0, 0), "0%");
  EXPECT_EQ(format_percentage(0, 10), "0%");
  EXPECT_EQ(format_percentage(10, 10), "100%");
  EXPECT_EQ(format_percentage(1, 1'000'000), "<0.01%");
  EXPECT_EQ(format_percentage(999'999, 1'000'000), ">99.99%");
  EXPECT_EQ(format_percentage(5, 100), "5.00%");
  EXPECT_DOUBLE_EQ(percentage(1, 4), 25.0);
  EXPECT_DOUBLE_EQ(percentage(3, 0), 0.0);
}

}  // namespace
}  // namespace verbena::cli
