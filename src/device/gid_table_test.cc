#include "device/gid_table.h"

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

Interface with(std::initializer_list<const char*> addresses, bool loopback = false) {
  Interface interface;
  interface.loopback = loopback;
  for (const auto* text : addresses) interface.addresses.push_back({parse_gid(text).value(), true});
  return interface;
}

TEST(GidTable, KeepsIndexZeroForTheLinkLocalAddress) {
  GidTable table;
  EXPECT_TRUE(table.follow(with({"10.0.0.1", "fd00::1"})));
  EXPECT_TRUE(table.at(0).is_zero());
  EXPECT_EQ(table.at(1), parse_gid("10.0.0.1"));
  EXPECT_EQ(table.at(2), parse_gid("fd00::1"));
  EXPECT_TRUE(table.follow(with({"10.0.0.1", "fd00::1", "fe80::1"})));
  EXPECT_EQ(table.at(0), parse_gid("fe80::1"));
}

TEST(GidTable, LoopbackStartsAtIndexZero) {
  GidTable table;
  table.follow(with({"127.0.0.1", "::1"}, true));
  EXPECT_EQ(table.at(0), parse_gid("127.0.0.1"));
  EXPECT_EQ(table.at(1), parse_gid("::1"));
}

TEST(GidTable, AnAddressThatGoesLeavesAHoleThatTheNextOneTakes) {
  GidTable table;
  table.follow(with({"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  EXPECT_TRUE(table.follow(with({"10.0.0.1", "10.0.0.3"})));
  EXPECT_TRUE(table.at(2).is_zero());
  EXPECT_EQ(table.index_of(*parse_gid("10.0.0.3")), 3U);
  EXPECT_TRUE(table.follow(with({"10.0.0.1", "10.0.0.3", "10.0.0.9"})));
  EXPECT_EQ(table.at(2), parse_gid("10.0.0.9"));
}

TEST(GidTable, NothingNewIsNoChange) {
  GidTable table;
  const auto interface = with({"10.0.0.1"});
  EXPECT_TRUE(table.follow(interface));
  EXPECT_FALSE(table.follow(interface));
}

TEST(GidTable, ATentativeAddressIsNotYetThere) {
  GidTable table;
  auto interface = with({"fd00::1"});
  interface.addresses[0].usable = false;
  EXPECT_FALSE(table.follow(interface));
  EXPECT_EQ(table.used_length(), 0U);
}

TEST(GidTable, MoreAddressesThanIndicesAreLeftOut) {
  GidTable table;
  Interface interface;
  for (std::uint32_t i = 0; i < 300; ++i) interface.addresses.push_back({Gid::from_ipv4(0x0a000000U + i), true});
  EXPECT_TRUE(table.follow(interface));
  EXPECT_EQ(table.used_length(), GidTable::kLength);
  EXPECT_TRUE(table.at(GidTable::kLength).is_zero());
}

TEST(ChooseInterfaces, TakesTheDefaultRouteFirstAndLoopbackOnlyAlone) {
  Network network(3);
  network[0] = {.index = 1, .name = "lo", .up = true, .loopback = true, .addresses = {{*parse_gid("127.0.0.1"), true}}};
  network[1] = {.index = 2, .name = "eth0", .up = true, .addresses = {{*parse_gid("10.0.0.1"), true}}};
  network[2] = {
      .index = 3, .name = "eth1", .up = true, .default_route = true, .addresses = {{*parse_gid("10.0.1.1"), true}}};
  auto chosen = choose_interfaces(network);
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0]->name, "eth1");
  network[1].up = network[2].up = false;
  chosen = choose_interfaces(network);
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0]->name, "lo");
}

}  // namespace
}  // namespace verbena::device
