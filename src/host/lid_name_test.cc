#include "host/lid_name.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr LidHolder kHolder{8, 11, 0x0200000000080001, 4242};

TEST(LidName, IsReadBackAsItWasWritten) {
  EXPECT_EQ(parse_lid_name(lid_name(kHolder)), kHolder);
}

TEST(LidName, RefusesWhatIsWrittenOtherwise) {
  const std::string good = lid_name(kHolder);
  for (std::size_t length = 0; length < good.size() - 3; ++length) {
    EXPECT_EQ(parse_lid_name(good.substr(0, length)), std::nullopt) << length;
  }
  EXPECT_EQ(parse_lid_name(good + "/1"), std::nullopt);
  EXPECT_EQ(parse_lid_name(lid_name({9, 8, 1, 1})), std::nullopt);
}

TEST(LidName, IsFoundInTheLineOfAListeningSocket) {
  const std::string name = "@" + lid_name(kHolder).substr(1);
  EXPECT_EQ(parse_lid_line("0000000000000000: 00000002 00000000 00010000 0005 01 123 " + name), kHolder);
  EXPECT_EQ(parse_lid_line("0000000000000000: 00000002 00000000 00000000 0005 01 123 " + name), std::nullopt);
}

TEST(LidName, OnlyDifferentPortsWithACommonLidClash) {
  EXPECT_TRUE(clash(kHolder, {11, 11, 7, 1}));
  EXPECT_TRUE(clash({9, 9, 7, 1}, kHolder));
  EXPECT_FALSE(clash(kHolder, {12, 12, 7, 1}));
  EXPECT_FALSE(clash(kHolder, {8, 11, kHolder.guid, 1}));
}

}  // namespace
}  // namespace verbena::host
