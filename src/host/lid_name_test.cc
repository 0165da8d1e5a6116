#include "host/lid_name.h"

#include <initializer_list>
#include <utility>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr LidHolder kHolder{8, 11, 0x0200000000080001, 4242};

TEST(LidName, IsReadBackAsItWasWritten) {
  EXPECT_EQ(parse_lid_name(lid_name(kHolder)), kHolder);
  LidHolder second = kHolder;
  second.copy = 1;
  EXPECT_EQ(parse_lid_name(lid_name(second)), second);
  EXPECT_EQ(parse_lid_name(lid_name({0xbfff, 0xbfff, 1, 1})), (LidHolder{0xbfff, 0xbfff, 1, 1}));
}

TEST(LidName, RefusesWhatIsWrittenOtherwise) {
  const std::string good = lid_name(kHolder);
  for (std::size_t length = 0; length < good.size() - 3; ++length) {
    EXPECT_EQ(parse_lid_name(good.substr(0, length)), std::nullopt) << length;
  }
  for (const auto* more : {"/", "/0", "/x", "/1/", "/1/1"})
    EXPECT_EQ(parse_lid_name(good + more), std::nullopt) << more;
  for (const auto& [first, last] : std::initializer_list<std::pair<std::uint16_t, std::uint16_t>>{
           {9, 8}, {0, 0}, {0, 3}, {0xbfff, 0xc000}, {0xc000, 0xc000}, {0xffff, 0xffff}}) {
    EXPECT_EQ(parse_lid_name(lid_name({first, last, 1, 1})), std::nullopt) << first;
  }
}

TEST(LidName, IsFoundInTheLineOfAListeningSocket) {
  const std::string name = "@" + lid_name(kHolder).substr(1);
  EXPECT_EQ(parse_lid_line("0000000000000000: 00000002 00000000 00010000 0005 01 123 " + name), kHolder);
  EXPECT_EQ(parse_lid_line("0000000000000000: 00000002 00000000 00000000 0005 01 123 " + name), std::nullopt);
}

TEST(LidName, OnlyDifferentRangesWithACommonLidClash) {
  EXPECT_TRUE(clash(kHolder, {11, 11, 7, 1}));
  EXPECT_TRUE(clash({9, 9, 7, 1}, kHolder));
  EXPECT_FALSE(clash(kHolder, {12, 12, 7, 1}));
  EXPECT_FALSE(clash(kHolder, {8, 11, kHolder.guid, 1}));
  EXPECT_TRUE(clash(kHolder, {8, 8, kHolder.guid, 1})) << "one port with two LMCs";
  EXPECT_FALSE(clash(kHolder, {4, 4, kHolder.guid, 1})) << "its LIDs changed, and one process was first";
}

}  // namespace
}  // namespace verbena::host
