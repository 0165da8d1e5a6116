#include "verbena/gid_resolver.h"

#include <cerrno>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kEth = 1001;  // interface indices that no machine has
constexpr std::uint32_t kOther = 1002;

Gid gid(const char* text) {
  return *parse_gid(text);
}

GidEntry entry(const char* text, std::uint32_t index, GidType type = GidType::kRoceV2, std::uint32_t netdev = kEth,
               std::uint8_t port = 1) {
  return {.gid = gid(text), .type = type, .port = port, .index = index, .netdev = netdev};
}

// What a kernel would say: everything by one interface, from one address.
RouteLookup by(std::uint32_t netdev, const char* source = "::") {
  return [netdev, source](const Gid&, std::uint32_t asked) -> Result<Route> {
    if (asked != 0 && asked != netdev)
      return failure(ErrorCode::kUnreachable, "no route by that interface", ENETUNREACH);
    return Route{.netdev = netdev, .source = gid(source), .gateway = {}, .local = false, .mtu = 0};
  };
}

RouteLookup nowhere() {
  return [](const Gid&, std::uint32_t) -> Result<Route> {
    return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
  };
}

SourceQuery query(const char* destination) {
  SourceQuery asked;
  asked.destination = gid(destination);
  asked.port = 1;
  return asked;
}

// As a kernel lists a RoCE port: each address as v1 and as v2.
std::vector<GidEntry> kernel_table() {
  return {entry("fe80::1", 0, GidType::kRoceV1),         entry("fe80::1", 1),
          entry("::ffff:10.0.0.1", 2, GidType::kRoceV1), entry("::ffff:10.0.0.1", 3),
          entry("fd00::1", 4, GidType::kRoceV1),         entry("fd00::1", 5),
          entry("2001:db8::1", 6, GidType::kRoceV1),     entry("2001:db8::1", 7)};
}

std::uint32_t index_for(const std::vector<GidEntry>& table, const SourceQuery& asked, const RouteLookup& routes) {
  const Result<SourceChoice> choice = choose_source(table, asked, routes);
  if (!choice) {
    ADD_FAILURE() << choice.error().message;
    return 999;
  }
  return choice->entry.index;
}

struct Case {
  const char* name;
  const char* destination;
  std::uint32_t index;
};

class ChoosesFromAKernelTable : public ::testing::TestWithParam<Case> {};

TEST_P(ChoosesFromAKernelTable, ByFamilyTypeAndScope) {
  EXPECT_EQ(index_for(kernel_table(), query(GetParam().destination), by(kEth)), GetParam().index);
}

INSTANTIATE_TEST_SUITE_P(All, ChoosesFromAKernelTable,
                         ::testing::Values(Case{"Ipv4", "10.0.0.2", 3}, Case{"LinkLocal", "fe80::2", 1},
                                           Case{"UniqueLocal", "fd00::2", 5}, Case{"Global", "2001:db8::2", 7},
                                           Case{"Ipv4Multicast", "224.0.0.5", 3},
                                           Case{"LinkLocalMulticast", "ff02::1", 1},
                                           Case{"GlobalMulticast", "ff0e::1", 7}),
                         [](const auto& tested) { return tested.param.name; });

TEST(GidResolver, EachAddressListedOnceWorksAsWell) {
  const std::vector<GidEntry> table{entry("fe80::1", 0), entry("::ffff:10.0.0.1", 1)};
  EXPECT_EQ(index_for(table, query("10.0.0.2"), by(kEth)), 1U);
  EXPECT_EQ(index_for(table, query("fe80::2"), by(kEth)), 0U);
}

TEST(GidResolver, Ipv6OnlyHostsWork) {
  const std::vector<GidEntry> table{entry("fe80::1", 0), entry("2001:db8::1", 1)};
  EXPECT_EQ(index_for(table, query("2001:db8:9::2"), by(kEth)), 1U);
}

TEST(GidResolver, TakesTheAddressThatTheKernelWouldSendFrom) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0), entry("::ffff:10.1.0.1", 1)};
  EXPECT_EQ(index_for(table, query("10.1.0.2"), by(kEth, "::ffff:10.1.0.1")), 1U);
  EXPECT_EQ(index_for(table, query("10.0.0.2"), by(kEth, "::ffff:10.0.0.1")), 0U);
}

TEST(GidResolver, APreferredAddressAsV1GoesBehindAnotherAsV2) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV1), entry("::ffff:10.0.0.9", 1)};
  EXPECT_EQ(index_for(table, query("10.0.0.2"), by(kEth, "::ffff:10.0.0.1")), 1U);
}

TEST(GidResolver, OnlyV1IsBetterThanNothing) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 4, GidType::kRoceV1)};
  EXPECT_EQ(index_for(table, query("10.0.0.2"), by(kEth)), 4U);
}

TEST(GidResolver, HolesAndOrderDoNotMatter) {
  std::vector<GidEntry> table = kernel_table();
  std::rotate(table.begin(), table.begin() + 3, table.end());
  for (GidEntry& one : table) one.index = one.index * 7 % 256 + 20;
  const Result<SourceChoice> choice = choose_source(table, query("10.0.0.2"), by(kEth));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->entry.gid, gid("10.0.0.1"));
  EXPECT_EQ(choice->entry.type, GidType::kRoceV2);
}

TEST(GidResolver, TakesTheInterfaceOfTheRoute) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV2, kOther),
                                    entry("::ffff:10.0.0.2", 1, GidType::kRoceV2, kEth)};
  EXPECT_EQ(index_for(table, query("10.0.0.3"), by(kEth)), 1U);
  EXPECT_EQ(index_for(table, query("10.0.0.3"), by(kOther)), 0U);
}

TEST(GidResolver, ARouteByAForeignInterfaceIsRefusedWithBothNames) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV2, kEth)};
  const Result<SourceChoice> choice = choose_source(table, query("10.0.0.3"), by(kOther));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kUnreachable);
  EXPECT_THAT(choice.error().message, HasSubstr("1001"));
  EXPECT_THAT(choice.error().message, HasSubstr("1002"));
}

TEST(GidResolver, ARouteOfItsOwnInterfaceSavesAPortThatTheMainTableMisses) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV2, kEth)};
  const RouteLookup both = [](const Gid&, std::uint32_t asked) -> Result<Route> {
    return Route{.netdev = asked == 0 ? kOther : asked, .source = {}, .gateway = {}, .local = false, .mtu = 0};
  };
  EXPECT_EQ(index_for(table, query("10.0.0.3"), both), 0U);
}

TEST(GidResolver, DevicesThatNameNoInterfaceAreTrusted) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV2, 0)};
  EXPECT_EQ(index_for(table, query("10.0.0.3"), by(kOther)), 0U);
}

TEST(GidResolver, LoopbackToItself) {
  const RouteLookup local = [](const Gid& destination, std::uint32_t) -> Result<Route> {
    return Route{.netdev = 1, .source = destination, .gateway = {}, .local = true, .mtu = 0};
  };
  EXPECT_EQ(index_for(kernel_table(), query("10.0.0.1"), local), 3U);
  EXPECT_EQ(index_for(kernel_table(), query("2001:db8::1"), local), 7U);
  const std::vector<GidEntry> lo{entry("::ffff:127.0.0.1", 0, GidType::kRoceV2, 1),
                                 entry("::1", 1, GidType::kRoceV2, 1)};
  EXPECT_EQ(index_for(lo, query("127.0.0.1"), local), 0U);
  EXPECT_EQ(index_for(lo, query("::1"), local), 1U);
}

TEST(GidResolver, AnotherAddressOfThisHostIsReachable) {
  const RouteLookup local = [](const Gid& destination, std::uint32_t) -> Result<Route> {
    return Route{.netdev = 1, .source = destination, .gateway = {}, .local = true, .mtu = 0};
  };
  EXPECT_EQ(index_for(kernel_table(), query("192.168.7.7"), local), 3U);
}

TEST(GidResolver, LinkLocalTriesEachInterface) {
  const std::vector<GidEntry> table{entry("fe80::1", 0, GidType::kRoceV2, kOther),
                                    entry("fe80::2", 1, GidType::kRoceV2, kEth)};
  EXPECT_EQ(index_for(table, query("fe80::9"), by(kEth)), 1U);
}

TEST(GidResolver, ANamedInterfaceDecides) {
  const std::vector<GidEntry> table{entry("fe80::1", 0, GidType::kRoceV2, kOther),
                                    entry("fe80::2", 1, GidType::kRoceV2, kEth)};
  SourceQuery asked = query("fe80::9");
  asked.netdev = kEth;
  EXPECT_EQ(index_for(table, asked, by(kEth)), 1U);
  asked.netdev = 7777;
  const Result<SourceChoice> none = choose_source(table, asked, by(kEth));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

TEST(GidResolver, ANamedSourceDecides) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0), entry("::ffff:10.0.0.9", 1)};
  SourceQuery asked = query("10.0.0.2");
  asked.source = gid("10.0.0.9");
  EXPECT_EQ(index_for(table, asked, by(kEth, "::ffff:10.0.0.1")), 1U);
  asked.source = gid("10.0.0.8");
  EXPECT_FALSE(choose_source(table, asked, by(kEth)));
}

TEST(GidResolver, FamiliesThatDoNotMatchAreNamed) {
  const std::vector<GidEntry> ipv4_only{entry("::ffff:10.0.0.1", 3)};
  const Result<SourceChoice> choice = choose_source(ipv4_only, query("fe80::2"), by(kEth));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kUnreachable);
  EXPECT_THAT(choice.error().message, HasSubstr("link-local IPv6"));
  EXPECT_THAT(choice.error().message, HasSubstr("::ffff:10.0.0.1"));
  EXPECT_FALSE(choose_source(std::vector{entry("2001:db8::1", 0)}, query("10.0.0.2"), by(kEth)));
  EXPECT_FALSE(choose_source(std::vector{entry("fe80::1", 0)}, query("2001:db8::2"), by(kEth)));
}

TEST(GidResolver, AnotherPortsGidsAreNotTaken) {
  const std::vector<GidEntry> table{entry("::ffff:10.0.0.1", 0, GidType::kRoceV2, kEth, 2)};
  const Result<SourceChoice> choice = choose_source(table, query("10.0.0.2"), by(kEth));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(choice.error().message, HasSubstr("container"));
}

TEST(GidResolver, TheZeroGidIsNoDestination) {
  const Result<SourceChoice> choice = choose_source(kernel_table(), SourceQuery{}, by(kEth));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kInvalidArgument);
}

TEST(GidResolver, NoRouteIsTold) {
  const Result<SourceChoice> choice = choose_source(kernel_table(), query("10.9.9.9"), nowhere());
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(choice.error().system_errno, ENETUNREACH);
}

TEST(GidResolver, InfiniBandTakesTheGidOfTheSubnetAndAsksForNoRoute) {
  const std::vector<GidEntry> table{entry("fe80::1", 0, GidType::kInfiniBand, 0),
                                    entry("fec0::1", 1, GidType::kInfiniBand, 0)};
  EXPECT_EQ(index_for(table, query("fec0::9"), nowhere()), 1U);
  EXPECT_EQ(index_for(table, query("fee0::9"), nowhere()), 0U);
}

TEST(GidResolver, ExplainsEachDecision) {
  const auto why = [](const std::vector<GidEntry>& table, const char* to, const RouteLookup& routes) {
    return choose_source(table, query(to), routes)->explanation;
  };
  EXPECT_THAT(why(kernel_table(), "10.0.0.2", by(kEth)), HasSubstr("RoCE v2 goes before v1"));
  const std::vector<GidEntry> two{entry("::ffff:10.0.0.1", 0), entry("::ffff:10.0.0.9", 1)};
  EXPECT_THAT(why(two, "10.0.0.2", by(kEth, "::ffff:10.0.0.9")), HasSubstr("kernel would send from"));
  EXPECT_THAT(why(two, "10.0.0.2", by(kEth)), HasSubstr("lowest index"));
  EXPECT_THAT(why({two[0]}, "10.0.0.2", by(kEth)), HasSubstr("only one that fits"));
}

TEST(GidResolver, InfiniBandSaysWhenTheDestinationIsOfAnotherSubnet) {
  const std::vector<GidEntry> table{entry("fe80::1", 0, GidType::kInfiniBand, 0),
                                    entry("fec0::1", 1, GidType::kInfiniBand, 0)};
  EXPECT_THAT(choose_source(table, query("fec0::9"), nowhere())->explanation, HasSubstr("of the destination's subnet"));
  EXPECT_THAT(choose_source(table, query("fee0::9"), nowhere())->explanation, HasSubstr("none is of the destination"));
  SourceQuery asked = query("fec0::9");
  asked.source = gid("fe80::1");
  EXPECT_EQ(index_for(table, asked, nowhere()), 0U);
  asked.source = gid("fe80::5");
  EXPECT_EQ(choose_source(table, asked, nowhere()).error().code, ErrorCode::kNotFound);
}

TEST(GidResolver, AnInfiniBandPortNextToAnEthernetOneKeepsToItsOwnGids) {
  const std::vector<GidEntry> table{entry("fe80::1", 0, GidType::kInfiniBand, 0, 1),
                                    entry("::ffff:10.0.0.1", 3, GidType::kRoceV2, kEth, 2)};
  EXPECT_EQ(index_for(table, query("fe80::9"), nowhere()), 0U);
  SourceQuery asked = query("10.0.0.2");
  asked.port = 2;
  EXPECT_EQ(index_for(table, asked, by(kEth)), 3U);
}

// A source that no other host can answer to.
TEST(GidResolver, LoopbackIsNoSourceForAnotherHost) {
  for (const std::uint32_t netdev : {kEth, 0U}) {
    const std::vector<GidEntry> table{entry("::ffff:127.0.0.1", 0, GidType::kRoceV2, netdev),
                                      entry("::ffff:10.0.0.1", 1, GidType::kRoceV2, netdev)};
    EXPECT_EQ(index_for(table, query("10.0.0.2"), by(kEth)), 1U);
    const Result<SourceChoice> none = choose_source(std::span(table).first(1), query("10.0.0.2"), by(kEth));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::kUnreachable);
  }
}

TEST(GidResolver, OfSeveralOwnAddressesALoopbackOneComesLast) {
  const RouteLookup local = [](const Gid&, std::uint32_t) -> Result<Route> {
    return Route{.netdev = 1, .source = {}, .gateway = {}, .local = true, .mtu = 0};
  };
  const std::vector<GidEntry> table{entry("::ffff:127.0.0.1", 0), entry("::ffff:10.0.0.1", 1)};
  EXPECT_EQ(index_for(table, query("192.168.7.7"), local), 1U);
}

// The same addresses in other slots, and holes where GIDs went: the value is chosen, so nothing changes for the peer.
TEST(GidResolver, AnAddressThatMovedToAnotherIndexIsStillTheSource) {
  for (const std::uint32_t index : {3U, 4U, 8U, 255U}) {
    const std::vector<GidEntry> table{entry("fe80::1", 1), entry("::ffff:10.0.0.1", index)};
    const Result<SourceChoice> choice = choose_source(table, query("10.0.0.2"), by(kEth));
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->entry.gid, gid("10.0.0.1"));
    EXPECT_EQ(choice->entry.index, index);
  }
}

}  // namespace
}  // namespace verbena
