#include "device/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::device {
namespace {

using ::testing::HasSubstr;

TEST(Limits, AreTheStandardButForWhatIsSaid) {
  const auto limits = parse_limits("max_ah=64, max_qp=2");
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->max_ah, 64U);
  EXPECT_EQ(limits->max_qp, 2U);
  EXPECT_EQ(limits->max_pd, standard_limits().max_pd);
}

TEST(Limits, SayWhichPartIsWrongAndWhatItMayBe) {
  for (const auto* text : {"max_ah=0", "max_ah=-1", "max_ah=many", "max_ah=4294967296", "max_ah=32768"}) {
    const auto limits = parse_limits(text);
    ASSERT_FALSE(limits) << text;
    EXPECT_THAT(limits.error().message, HasSubstr(text));
    EXPECT_THAT(limits.error().message, HasSubstr("from 1 to 32767"));
  }
  const auto unknown = parse_limits("max_handles=3");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("max_ah"));
}

}  // namespace
}  // namespace verbena::device
