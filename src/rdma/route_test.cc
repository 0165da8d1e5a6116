// Against the kernel of the machine: what holds on any, and what it says in network namespaces of the tests' own.
#include "verbena/route.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <namespaces/own_namespace.h>
#include <net/if.h>

#include "verbena/gid_resolver.h"

namespace verbena {
namespace {

using testing::in_own_namespace;
using testing::ip;

constexpr const char* kFar = "203.0.113.9";
constexpr const char* kFarIpv6 = "2001:db8:9::9";

// Two interfaces with a network each, and no route beyond.
void add_two_wires() {
  ip("link set lo up");
  for (const char* number : {"0", "1"}) {
    const std::string name = std::string("wire") + number;
    ip("link add " + name + " type veth peer name far" + number);
    ip("link set " + name + " up");
    ip("link set far" + std::string(number) + " up");
    ip("address add 10.8" + std::string(number) + ".0.1/24 dev " + name);
    ip("address add fd0" + std::string(number) + "::1/64 dev " + name + " nodad");
  }
}

std::uint32_t wire(int number) {
  return if_nametoindex(("wire" + std::to_string(number)).c_str());
}

std::vector<GidEntry> gids_of(const std::vector<int>& numbers) {
  std::vector<GidEntry> table;
  for (const int number : numbers) {
    for (const std::string& gid : {"10.8" + std::to_string(number) + ".0.1", "fd0" + std::to_string(number) + "::1"}) {
      table.push_back({.gid = *parse_gid(gid),
                       .type = GidType::kRoceV2,
                       .port = 1,
                       .index = static_cast<std::uint32_t>(table.size()),
                       .netdev = wire(number)});
    }
  }
  return table;
}

// The source that is chosen of the interfaces of these numbers, or "" with the words why none is.
std::string source_to(const std::string& destination, const std::vector<int>& numbers, std::uint32_t netdev = 0) {
  const auto choice =
      choose_source(gids_of(numbers),
                    {.destination = *parse_gid(destination), .port = 1, .netdev = netdev, .source = {}}, look_up_route);
  if (choice) return to_string(choice->entry.gid);
  EXPECT_EQ(choice.error().code, ErrorCode::kUnreachable) << choice.error().message;
  return "";
}

TEST(Route, LoopbackIsLocal) {
  const Result<Route> route = look_up_route(*parse_gid("127.0.0.1"), 0);
  ASSERT_TRUE(route) << route.error().message;
  EXPECT_TRUE(route->local);
  EXPECT_EQ(route->netdev, if_nametoindex("lo"));
  EXPECT_EQ(route->source, *parse_gid("127.0.0.1"));
}

TEST(Route, AForeignLoopbackAddressIsLocalToo) {
  const Result<Route> route = look_up_route(*parse_gid("127.9.9.9"), 0);
  ASSERT_TRUE(route) << route.error().message;
  EXPECT_TRUE(route->local);
}

TEST(Route, ByAnInterfaceThatIsNotThereIsUnreachable) {
  const Result<Route> route = look_up_route(*parse_gid("192.0.2.1"), 999999);
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::kUnreachable);
}

TEST(Route, ByAnInterfaceIsWhatTheTablesHave) {
  in_own_namespace([] {
    add_two_wires();
    ip("route add default via 10.80.0.2");
    ip("route add default via fd00::2");
    for (const char* far : {kFar, kFarIpv6}) {
      const Result<Route> by_its_own = look_up_route(*parse_gid(far), wire(0));
      ASSERT_TRUE(by_its_own) << by_its_own.error().message;
      EXPECT_EQ(by_its_own->netdev, wire(0));
      EXPECT_FALSE(by_its_own->gateway.is_zero());
      const Result<Route> by_another = look_up_route(*parse_gid(far), wire(1));
      ASSERT_FALSE(by_another) << "an IPv4 destination that no route of the interface leads to is not on its link";
      EXPECT_EQ(by_another.error().code, ErrorCode::kUnreachable);
      EXPECT_THAT(by_another.error().message, ::testing::HasSubstr(" by wire1"));
    }
    for (const char* near : {"10.81.0.9", "fd01::9", "fe80::9"}) {
      const Result<Route> on_link = look_up_route(*parse_gid(near), wire(1));
      ASSERT_TRUE(on_link) << on_link.error().message;
      EXPECT_EQ(on_link->netdev, wire(1));
      EXPECT_TRUE(on_link->gateway.is_zero());
    }
  });
}

// One that is on the link because a route says so, in no network of the interface.
TEST(Route, OnTheLinkByARouteIsARoute) {
  in_own_namespace([] {
    add_two_wires();
    ip(std::string("route add ") + kFar + " dev wire1");
    ip(std::string("route add ") + kFarIpv6 + " dev wire1");
    for (const char* far : {kFar, kFarIpv6}) {
      const Result<Route> route = look_up_route(*parse_gid(far), wire(1));
      ASSERT_TRUE(route) << route.error().message;
      EXPECT_TRUE(route->gateway.is_zero());
      EXPECT_NE(source_to(far, {1}), "");
    }
  });
}

TEST(Route, TwoInterfacesInOneNetworkEachHaveOne) {
  in_own_namespace([] {
    add_two_wires();
    ip("address add 10.80.0.7/24 dev wire1");
    ip("address add fd00::7/64 dev wire1 nodad");
    for (const char* near : {"10.80.0.9", "fd00::9"}) {
      for (const int number : {0, 1}) {
        const Result<Route> route = look_up_route(*parse_gid(near), wire(number));
        ASSERT_TRUE(route) << route.error().message;
        EXPECT_EQ(route->netdev, wire(number));
      }
    }
  });
}

TEST(Route, OfSeveralNextHopsIsThatOfTheInterface) {
  in_own_namespace([] {
    add_two_wires();
    ip("route add default nexthop via 10.80.0.2 dev wire0 nexthop via 10.81.0.2 dev wire1");
    ip("-6 route add default nexthop via fd00::2 dev wire0 nexthop via fd01::2 dev wire1");
    for (const int number : {0, 1}) {
      for (const std::string& hop :
           {"10.8" + std::to_string(number) + ".0.2", "fd0" + std::to_string(number) + "::2"}) {
        const Result<Route> route = look_up_route(*parse_gid(hop.front() == 'f' ? kFarIpv6 : kFar), wire(number));
        ASSERT_TRUE(route) << route.error().message;
        EXPECT_EQ(route->netdev, wire(number));
        EXPECT_EQ(route->gateway, *parse_gid(hop));
      }
    }
  });
}

// A host with several ports has a table for the source address of each.
TEST(Route, ARuleForTheSourceAddressIsFollowed) {
  in_own_namespace([] {
    add_two_wires();
    ip("route add default via 10.80.0.2");
    ip("route add default via fd00::2");
    ip("rule add from 10.81.0.1 table 81");
    ip("-6 rule add from fd01::1 table 81");
    ip("route add default via 10.81.0.2 table 81");
    ip("route add default via fd01::2 table 81");
    const Result<Route> route = look_up_route(*parse_gid(kFar), wire(1));
    ASSERT_TRUE(route) << route.error().message;
    EXPECT_EQ(route->gateway, *parse_gid("10.81.0.2"));
    EXPECT_EQ(route->source, *parse_gid("10.81.0.1"));
    const Result<Route> ipv6 = look_up_route(*parse_gid(kFarIpv6), wire(1));
    ASSERT_TRUE(ipv6) << ipv6.error().message;
    EXPECT_EQ(ipv6->gateway, *parse_gid("fd01::2"));
    EXPECT_EQ(source_to(kFar, {1}), "::ffff:10.81.0.1");
    EXPECT_EQ(source_to(kFarIpv6, {1}), "fd01::1");
  });
}

TEST(Route, WhereThereIsNoneNoSourceIsChosen) {
  in_own_namespace([] {
    add_two_wires();
    for (const char* far : {kFar, kFarIpv6}) {
      EXPECT_EQ(source_to(far, {0, 1}), "") << far;
      EXPECT_EQ(source_to(far, {0, 1}, wire(1)), "") << far << " by a named interface";
    }
  });
}

TEST(Route, ThatLeavesElsewhereChoosesNoSource) {
  in_own_namespace([] {
    add_two_wires();
    ip("route add default via 10.80.0.2");
    ip("route add default via fd00::2");
    EXPECT_EQ(source_to(kFar, {0, 1}), "::ffff:10.80.0.1");
    EXPECT_EQ(source_to(kFarIpv6, {0, 1}), "fd00::1");
    for (const char* far : {kFar, kFarIpv6, "10.80.0.9", "fd00::9"}) EXPECT_EQ(source_to(far, {1}), "") << far;
  });
}

TEST(Route, ThatForbidsChoosesNoSource) {
  in_own_namespace([] {
    add_two_wires();
    ip("route add default via 10.80.0.2");
    ip("route add default via fd00::2");
    for (const char* type : {"blackhole", "unreachable", "prohibit"}) {
      const std::string route = std::string(type) + " ";
      ip("route add " + route + "203.0.113.0/24");
      ip("route add " + route + "2001:db8:9::/64");
      for (const char* far : {kFar, kFarIpv6}) {
        EXPECT_EQ(source_to(far, {0, 1}), "") << far << " " << type;
        const Result<Route> none = look_up_route(*parse_gid(far), 0);
        ASSERT_FALSE(none) << far << " " << type;
        const std::string forbids = std::string("one of type ") + type + " forbids it";
        EXPECT_THAT(none.error().message, ::testing::HasSubstr(forbids));
        for (const int number : {0, 1}) {
          const Result<Route> by_one = look_up_route(*parse_gid(far), wire(number));
          ASSERT_FALSE(by_one) << far << " " << type << " by wire" << number;
          EXPECT_THAT(by_one.error().message, ::testing::HasSubstr(" by wire" + std::to_string(number) + ": "));
          EXPECT_THAT(by_one.error().message, ::testing::HasSubstr(forbids));
        }
      }
      ip("route del " + route + "203.0.113.0/24");
      ip("route del " + route + "2001:db8:9::/64");
      for (const char* far : {kFar, kFarIpv6}) EXPECT_NE(source_to(far, {0, 1}), "") << far << " without " << type;
    }
  });
}

TEST(Route, AnAddressOfThisHostIsReachedFromAnyInterface) {
  in_own_namespace([] {
    add_two_wires();
    EXPECT_EQ(source_to("10.80.0.1", {1}), "::ffff:10.81.0.1");
    EXPECT_EQ(source_to("10.80.0.1", {1}, wire(1)), "::ffff:10.81.0.1");
    EXPECT_EQ(source_to("fd00::1", {1}, wire(1)), "fd01::1");
    EXPECT_FALSE(look_up_route(*parse_gid("10.80.0.1"), wire(1))) << "by that interface it is not";
  });
}

}  // namespace
}  // namespace verbena
