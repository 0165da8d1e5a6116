#include "device/netlink.h"

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

TEST(Netlink, ShowsTheLoopbackInterfaceWithItsAddress) {
  auto netlink = Netlink::open();
  ASSERT_TRUE(netlink) << netlink.error().message;
  const auto network = (*netlink)->read();
  ASSERT_TRUE(network) << network.error().message;
  const auto* loopback = find_interface(*network, "lo");
  ASSERT_NE(loopback, nullptr);
  EXPECT_TRUE(loopback->loopback);
  EXPECT_GT(loopback->index, 0U);
  EXPECT_FALSE((*netlink)->drain());
}

}  // namespace
}  // namespace verbena::device
