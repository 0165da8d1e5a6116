#include "verbena/port_choice.h"

#include <fake_verbs/fake_verbs.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verbena/resolve.h"

namespace verbena {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kFirst = 1001;
constexpr std::uint32_t kSecond = 1002;

fake::Port ethernet(const char* address, std::uint32_t netdev) {
  fake::Port port;
  port.gids = {{*parse_gid(address), IBV_GID_TYPE_ROCE_V2, netdev}};
  return port;
}

fake::Port infiniband(std::uint16_t lid, std::uint8_t flags = 0) {
  fake::Port port;
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = lid;
  port.flags = flags;
  port.gids = {{*parse_gid("fe80::1"), IBV_GID_TYPE_IB, 0}};
  return port;
}

RouteLookup by(std::uint32_t netdev, bool also_by_others = false) {
  return [=](const Gid&, std::uint32_t asked) -> Result<Route> {
    if (asked != 0 && asked != netdev && !also_by_others) {
      return failure(ErrorCode::kUnreachable, "no route by that interface", ENETUNREACH);
    }
    return Route{.netdev = asked != 0 ? asked : netdev, .source = {}, .gateway = {}, .local = false, .mtu = 0};
  };
}

struct PortOfSeveral : ::testing::Test {
  PortOfSeveral() {
    fake::reset();
    fake::add_device("nic0", {ethernet("10.0.0.1", kFirst)});
    fake::add_device("nic1", {ethernet("10.0.1.1", kSecond)});
  }
};

// A library that tries every NIC dies on the one that is not wired for the peer.
TEST_F(PortOfSeveral, IsTheOneThatTheRouteLeavesBy) {
  for (const bool also_by_others : {false, true}) {
    const auto choice = choose_port(*parse_destination("10.0.1.9"), by(kSecond, also_by_others));
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->context.name(), "nic1");
    EXPECT_EQ(choice->source.entry.gid, *parse_gid("10.0.1.1"));
    EXPECT_THAT(choice->explanation, HasSubstr("nic1 port 1: to ::ffff:10.0.1.9 from ::ffff:10.0.1.1"));
  }
}

TEST_F(PortOfSeveral, ARouteByAnInterfaceOfItsOwnIsSecondBest) {
  constexpr std::uint32_t kManagement = 1003;
  const auto choice = choose_port(*parse_destination("10.0.1.9"), by(kManagement, true));
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->context.name(), "nic0");
}

TEST_F(PortOfSeveral, EachThatWasLeftOutIsToldWithTheReason) {
  fake::Port down = ethernet("10.0.2.1", kFirst);
  down.state = IBV_PORT_DOWN;
  fake::add_device("nic2", {down});
  const auto none = choose_port(*parse_destination("fe80::9"), by(kFirst));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnreachable);
  EXPECT_THAT(none.error().message, HasSubstr("nic0 port 1: destination fe80::9 is link-local IPv6"));
  EXPECT_THAT(none.error().message, HasSubstr("nic2 port 1: it is"));
}

// What is of one link layer only is not ignored on the other.
TEST_F(PortOfSeveral, AnInterfaceIsNotOfInfinibandAndPathBitsAreNotOfEthernet) {
  fake::add_device("hca0", {infiniband(7)});
  Destination by_lid = *parse_destination("lid=5");
  ASSERT_TRUE(choose_port(by_lid, by(kFirst)));
  by_lid.netdev = kFirst;
  const auto foreign = choose_port(by_lid, by(kFirst));
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("hca0 port 1: it is InfiniBand, and the destination names a network"));
  Destination by_address = *parse_destination("10.0.0.9");
  by_address.source_path_bits = 1;
  const auto bits = choose_port(by_address, by(kFirst));
  ASSERT_FALSE(bits);
  EXPECT_THAT(bits.error().message, HasSubstr("nic0 port 1: it is Ethernet (RoCE), and the destination has path bits"));
}

TEST_F(PortOfSeveral, ANamedPortOrInterfaceOrSourceDecides) {
  fake::add_device("two0", {ethernet("10.0.3.1", kFirst), ethernet("10.0.3.2", kFirst)});
  Destination destination = *parse_destination("10.0.3.9,port=2");
  EXPECT_EQ(choose_port(destination, by(kFirst))->context.name(), "two0");
  destination.port = 0;
  destination.source = *parse_gid("10.0.3.2");
  EXPECT_EQ(choose_port(destination, by(kFirst))->port, 2);
  destination.source = {};
  destination.netdev = kSecond;
  EXPECT_EQ(choose_port(destination, by(kFirst, true))->context.name(), "nic1");
}

TEST_F(PortOfSeveral, ALidIsLookedForOnInfiniBandPortsOnly) {
  const auto none = choose_port(*parse_destination("lid=7"), by(kFirst));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("Ethernet (RoCE)"));
  fake::add_device("ib0", {infiniband(3, IBV_QPF_GRH_REQUIRED), infiniband(4)});
  const auto choice = choose_port(*parse_destination("lid=7"), by(kFirst));
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(choice->context.name(), "ib0");
  EXPECT_EQ(choice->port, 2) << "port 1 demands a GRH";
  const auto with_gid = choose_port(*parse_destination("lid=7,gid=fe80::7,port=1"), by(kFirst));
  ASSERT_TRUE(with_gid) << with_gid.error().message;
  EXPECT_EQ(with_gid->context.name(), "ib0");
  EXPECT_EQ(with_gid->port, 1);
  // and an IP address never goes to an InfiniBand port
  EXPECT_EQ(choose_port(*parse_destination("10.0.0.9"), by(kFirst))->context.name(), "nic0");
}

TEST(PortChoice, WithoutADeviceSaysWhatToDo) {
  fake::reset();
  const auto none = choose_port(*parse_destination("10.0.0.9"), by(kFirst));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("verbena run"));
}

}  // namespace
}  // namespace verbena
