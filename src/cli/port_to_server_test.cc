#include "cli/port_to_server.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

constexpr std::uint32_t kEth0 = 11;
constexpr std::uint32_t kEth1 = 12;

Gid gid(const char* text) {
  return *parse_gid(text);
}

// A device of two ports, on eth0 (10.0.0.1, fe80::a) and eth1 (10.0.1.1, fe80::b).
std::vector<PortCandidate> two_ports() {
  const auto entry = [](const char* address, std::uint8_t port, std::uint32_t netdev) {
    return GidEntry{.gid = gid(address), .type = GidType::kRoceV2, .port = port, .index = 0, .netdev = netdev};
  };
  const std::vector<GidEntry> table{entry("10.0.0.1", 1, kEth0), entry("fe80::a", 1, kEth0),
                                    entry("10.0.1.1", 2, kEth1), entry("fe80::b", 2, kEth1)};
  return {{.name = {"verbena0", 1}, .table = table}, {.name = {"verbena0", 2}, .table = table}};
}

// A kernel that routes 10.0.N.x by ethN, everything else by eth0's router, and has each interface's addresses.
Result<Route> route(const Gid& destination, std::uint32_t netdev) {
  const auto local = [&](const char* own, std::uint32_t by) {
    return destination == gid(own) && (netdev == 0 || netdev == by);
  };
  if (local("10.0.0.1", kEth0) || local("10.0.1.1", kEth1)) {
    return Route{.netdev = 1, .source = destination, .gateway = {}, .local = true};
  }
  if (destination.is_link_local()) {
    if (netdev == 0) return failure(ErrorCode::kUnreachable, "which link?", EINVAL);
    return Route{.netdev = netdev, .source = {}, .gateway = {}};
  }
  const bool second = destination.is_ipv4_mapped() && (destination.ipv4() >> 8) == 0x0a0001;
  const std::uint32_t by = second ? kEth1 : kEth0;
  if (netdev != 0 && netdev != by) return failure(ErrorCode::kUnreachable, "no route by that one", ENETUNREACH);
  return Route{.netdev = by, .source = second ? gid("10.0.1.1") : gid("10.0.0.1"), .gateway = {}};
}

std::string picked(const std::vector<const char*>& server, std::uint32_t netdev = 0) {
  std::vector<Gid> gids;
  for (const char* text : server) gids.push_back(gid(text));
  const auto port = pick_port(two_ports(), gids, netdev, route);
  return port ? to_text(*port) : port.error().message;
}

TEST(PortToServer, IsTheOneThatTheRouteLeavesBy) {
  EXPECT_EQ(picked({"10.0.0.7"}), "verbena0/1");
  EXPECT_EQ(picked({"10.0.1.7"}), "verbena0/2");
  EXPECT_EQ(picked({"10.0.1.7", "10.0.0.7"}), "verbena0/2") << "the server's best address decides";
  EXPECT_EQ(picked({"172.16.0.1"}), "verbena0/1");
}

TEST(PortToServer, OnThisHostIsTheOneThatHasTheAddress) {
  EXPECT_EQ(picked({"10.0.0.1"}), "verbena0/1");
  EXPECT_EQ(picked({"10.0.1.1"}), "verbena0/2");
}

TEST(PortToServer, OfALinkLocalAddressIsThatOfTheInterface) {
  EXPECT_EQ(picked({"fe80::7"}, kEth0), "verbena0/1");
  EXPECT_EQ(picked({"fe80::7"}, kEth1), "verbena0/2");
}

TEST(PortToServer, IsNotThatOfAnotherLinkForTheServersLinkLocalAddress) {
  std::vector<PortCandidate> first{two_ports().front()};
  const auto port = pick_port(first, {gid("10.0.1.7"), gid("fe80::7")}, 0, route);
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, testing::HasSubstr("leaves by"));
}

TEST(PortToServer, WhereNoneLeadsThereItIsSaidWhy) {
  EXPECT_THAT(picked({"2001:db8::7"}), testing::HasSubstr("2001:db8::7"));
  EXPECT_THAT(picked({}), testing::HasSubstr("no GID"));
}

TEST(PortToServer, OfInfiniBandIsTheFirst) {
  const auto port = pick_port({{.name = {"verbena1", 1}, .infiniband = true}}, {gid("fe80::9")}, 0, route);
  ASSERT_TRUE(port);
  EXPECT_EQ(to_text(*port), "verbena1/1");
}

}  // namespace
}  // namespace verbena::cli
