#include "cli/udp_port_holder.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using rdma::PortHolder;

constexpr std::uint32_t kSelf = 100;

std::string holder(const std::vector<PortHolder>& holders, const char* address) {
  return udp_port_holder(holders, *parse_gid(address), kSelf);
}

TEST(UdpPortHolder, IsNobodyWhereThisProcessHasThePort) {
  EXPECT_EQ(holder({}, "10.0.0.1"), "");
  EXPECT_EQ(holder({{.address = "10.0.0.1", .pid = kSelf}}, "10.0.0.1"), "");
  EXPECT_EQ(holder({{.address = "10.0.0.1", .pid = 7}, {.address = "10.0.0.1", .pid = kSelf}}, "10.0.0.1"), "")
      << "it is shared";
}

TEST(UdpPortHolder, IsWhoHasTheAddressOrAllOfItsFamily) {
  const std::string expected = "process 7 (nc) of user 1000";
  for (const char* address : {"10.0.0.1", "0.0.0.0", "::"}) {
    EXPECT_EQ(holder({{.address = address, .uid = 1000, .pid = 7, .process = "nc"}}, "10.0.0.1"), expected) << address;
  }
  EXPECT_EQ(holder({{.address = "fd00::1", .uid = 1000, .pid = 7, .process = "nc"}}, "fd00::1"), expected);
  EXPECT_EQ(holder({{.address = "0.0.0.0", .uid = 1000, .pid = 7}}, "fd00::1"), "");
  EXPECT_EQ(holder({{.address = "10.0.0.2", .uid = 1000, .pid = 7}}, "10.0.0.1"), "");
}

TEST(UdpPortHolder, OfAnInfinibandPortIsWhoHasAnAddressThatMayCarryIt) {
  const auto interface = [](const char* name, std::initializer_list<const char*> addresses) {
    rdma::InterfaceFacts made{.name = name};
    for (const char* address : addresses) made.addresses.push_back({.gid = *parse_gid(address)});
    return made;
  };
  const std::vector<rdma::InterfaceFacts> interfaces{interface("one", {"10.0.0.1", "fd00::1"}),
                                                     interface("two", {"10.0.1.1"})};
  const PortHolder of_one{.address = "10.0.0.1", .uid = 5, .pid = 9};
  const PortHolder of_two{.address = "10.0.1.1", .uid = 5, .pid = 9};
  EXPECT_TRUE(held_carriers({}, interfaces, kSelf).empty());
  EXPECT_EQ(held_carriers({of_one, of_two}, interfaces, kSelf).size(), 2U) << "this process has none";
  const auto held = held_carriers({of_one, of_two, {.address = "fd00::1", .pid = kSelf}}, interfaces, kSelf);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held.front().address, *parse_gid("10.0.0.1"));
  EXPECT_EQ(held.front().by, "process 9 of user 5");
}

TEST(UdpPortHolder, SaysWhatItCannotSee) {
  EXPECT_NE(holder({{.address = "10.0.0.1", .uid = 1000}}, "10.0.0.1").find("user 1000"), std::string::npos);
  EXPECT_NE(holder({{.address = "0.0.0.0", .uid = 0}}, "10.0.0.1").find("kernel"), std::string::npos);
  const std::vector<PortHolder> two{{.address = "::", .uid = 0}, {.address = "10.0.0.1", .uid = 5, .pid = 9}};
  EXPECT_NE(holder(two, "10.0.0.1").find("process 9"), std::string::npos) << "who can be named is named";
}

}  // namespace
}  // namespace verbena::cli
