#include "cli/served_ports.h"

#include <gtest/gtest.h>

#include "fake_verbs/fake_verbs.h"

namespace verbena::cli {
namespace {

constexpr std::uint32_t kEth0 = 11;
constexpr std::uint32_t kVlan = 12;
constexpr std::uint32_t kEth1 = 13;

class ServedPortsTest : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset(); }
};

TEST_F(ServedPortsTest, OfAnAddressIsThePortThatHasItOpenedOnce) {
  fake::add_device("mlx5_0", {fake::Port{.gids = {{.gid = *parse_gid("10.0.0.1"), .netdev = kEth0}}},
                              fake::Port{.gids = {{.gid = *parse_gid("10.0.1.1"), .netdev = kEth1}}}});
  auto ports = ServedPorts::open({});
  ASSERT_TRUE(ports) << ports.error().message;
  EXPECT_EQ(&ports->at({.gid = *parse_gid("10.0.0.1")}), &ports->first());
  UdEndpoint& second = ports->at({.gid = *parse_gid("10.0.1.1")});
  EXPECT_EQ(second.port().port, 2);
  EXPECT_EQ(&ports->at({.gid = *parse_gid("10.0.1.1")}), &second);
  EXPECT_EQ(&ports->at({.gid = *parse_gid("10.0.7.1")}), &ports->first()) << "none has it";
  EXPECT_EQ(ports->all().size(), 2U);
}

// An interface and a VLAN on it have the same link-local address, and the table of a kernel device has both.
TEST_F(ServedPortsTest, APortThatHasAnAddressOnTwoInterfacesIsOpenedOnce) {
  const Gid gid = *parse_gid("fe80::1");
  fake::add_device("mlx5_0", {fake::Port{.gids = {{.gid = gid, .netdev = kEth0}, {.gid = gid, .netdev = kVlan}}}});
  auto ports = ServedPorts::open({});
  ASSERT_TRUE(ports) << ports.error().message;
  for (const std::uint32_t netdev : {kEth0, kVlan, kVlan}) {
    EXPECT_EQ(&ports->at({.gid = gid, .netdev = netdev}), &ports->first());
  }
  EXPECT_EQ(ports->all().size(), 1U);
  EXPECT_EQ(fake::live().pairs, 1U);
}

}  // namespace
}  // namespace verbena::cli
