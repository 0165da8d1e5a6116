#include "rdma/kernel_hop_limit.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

namespace verbena::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

ibv_ah_attr with_hop_limit(std::uint8_t hops) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.grh.hop_limit = hops;
  return attributes;
}

TEST(KernelHopLimit, IsTheRoutesOwnElseTheStandard) {
  const Gid v4 = Gid::from_ipv4(0x7f000001);
  Route route{.netdev = ::if_nametoindex("lo"), .source = v4, .gateway = {}, .local = true};
  unsigned standard = 0;
  ASSERT_TRUE(std::ifstream("/proc/sys/net/ipv4/ip_default_ttl") >> standard);
  EXPECT_EQ(kernel_hop_limit(v4, route), standard);
  route.hop_limit = 9;
  EXPECT_EQ(kernel_hop_limit(v4, route), 9);
  route = {.netdev = 0, .source = {}, .gateway = {}};
  EXPECT_EQ(kernel_hop_limit(*parse_gid("fd00::1"), route), std::nullopt) << "no interface, no standard";
}

TEST(KernelHopLimit, TakesThePlaceOfWhatWasAskedForOnTheKernelsDeviceOnly) {
  ibv_ah_attr attributes = with_hop_limit(7);
  EXPECT_THAT(apply_kernel_hop_limit(DeviceKind::kKernelSoftware, GidType::kRoceV2, 64, attributes),
              HasSubstr("grh.hop_limit: 7 asked for, 64 made"));
  EXPECT_EQ(attributes.grh.hop_limit, 64);
  EXPECT_THAT(apply_kernel_hop_limit(DeviceKind::kKernelSoftware, GidType::kRoceV2, 64, attributes), IsEmpty());
  for (const DeviceKind kind : {DeviceKind::kVerbena, DeviceKind::kHardware}) {
    attributes = with_hop_limit(7);
    EXPECT_THAT(apply_kernel_hop_limit(kind, GidType::kRoceV2, 64, attributes), IsEmpty());
    EXPECT_EQ(attributes.grh.hop_limit, 7);
  }
}

TEST(KernelHopLimit, ThatIsNotKnownIsSaid) {
  ibv_ah_attr attributes = with_hop_limit(7);
  EXPECT_THAT(apply_kernel_hop_limit(DeviceKind::kKernelSoftware, GidType::kRoceV2, std::nullopt, attributes),
              HasSubstr("grh.hop_limit: 7 asked for, that of"));
  EXPECT_EQ(attributes.grh.hop_limit, 7);
}

}  // namespace
}  // namespace verbena::rdma
