#include "device/quirks.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/settings.h"

namespace verbena::device {
namespace {

TEST(Quirks, AreGivenByName) {
  EXPECT_FALSE(parse_quirks("")->of_receiving().any());
  for (std::size_t i = 0; i < kQuirks; ++i) {
    const auto quirks = parse_quirks(kQuirkRows[i].name);
    ASSERT_TRUE(quirks);
    for (std::size_t j = 0; j < kQuirks; ++j) EXPECT_EQ(quirks->has(static_cast<Quirk>(j)), i == j) << i << " " << j;
  }
  const auto two = parse_quirks("memlock,grh_dirty");
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->has(Quirk::kMemlock));
  EXPECT_TRUE(two->of_receiving().grh_dirty);
  EXPECT_FALSE(two->of_receiving().wc_sl_unfilled);
}

TEST(Quirks, AnUnknownNameIsToldWithThoseThereAre) {
  const auto refused = parse_quirks("memlock,memlok");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("\"memlok\""));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("wc_sl_unfilled"));
}

TEST(Quirks, EachIsDescribedWithTheSetting) {
  const auto row = std::find_if(kSettingRows.begin(), kSettingRows.end(),
                                [](const SettingRow& one) { return one.variable == "VERBENA_QUIRKS"; });
  ASSERT_NE(row, kSettingRows.end());
  for (const QuirkRow& quirk : kQuirkRows) {
    EXPECT_THAT(std::string(row->doc), testing::HasSubstr(std::string(quirk.name) + ": " + std::string(quirk.doc)));
  }
}

}  // namespace
}  // namespace verbena::device
