#include "verbena/gid.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(Gid, ReadsIpv4AsItsMappedForm) {
  const auto gid = parse_gid("10.0.0.1");
  ASSERT_TRUE(gid);
  EXPECT_TRUE(gid->is_ipv4_mapped());
  EXPECT_EQ(gid->ipv4(), 0x0a000001U);
  EXPECT_EQ(to_string(*gid), "::ffff:10.0.0.1");
}

TEST(Gid, RefusesWhatIsNotAnAddress) {
  for (const auto* text : {"", "10.0.0", "10.0.0.256", "fe80::1%eth0", "verbena0", "1:2:3:4:5:6:7:8:9"}) {
    EXPECT_FALSE(parse_gid(text)) << text;
  }
}

TEST(Gid, KnowsItsScope) {
  EXPECT_TRUE(parse_gid("fe80::1")->is_link_local());
  EXPECT_TRUE(parse_gid("fd00::2")->is_unique_local());
  EXPECT_TRUE(parse_gid("ff02::1")->is_multicast());
  EXPECT_TRUE(parse_gid("224.0.0.1")->is_multicast());
  EXPECT_TRUE(parse_gid("::1")->is_loopback());
  EXPECT_TRUE(parse_gid("127.0.0.5")->is_loopback());
  EXPECT_FALSE(parse_gid("2001:db8::1")->is_link_local());
  EXPECT_TRUE(Gid{}.is_zero());
}

}  // namespace
}  // namespace verbena
