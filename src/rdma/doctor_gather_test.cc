#include "rdma/doctor_gather.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <namespaces/own_namespace.h>
#include <net/if.h>

#include "rdma/doctor_interfaces.h"

namespace verbena::rdma {
namespace {

using testing::add_wire;
using testing::in_own_namespace;
using testing::ip;

HostFacts host_with(LinkLayer link_layer) {
  PortFacts port;
  port.view = {.port = 1, .link_layer = link_layer, .active = true, .state = "active", .lid = 9};
  HostFacts host;
  host.devices.push_back({.name = "one0", .ports = {port}});
  return host;
}

TEST(DoctorGather, APeerByLidIsNotLookedForOnEthernet) {
  const PathFacts path = gather_path(host_with(LinkLayer::kEthernet), {.dlid = 7});
  EXPECT_TRUE(path.device.empty());
  ASSERT_TRUE(path.source_error);
  EXPECT_EQ(path.source_error->code, ErrorCode::kUnreachable);
  EXPECT_THAT(path.source_error->message, ::testing::HasSubstr("LID 7"));
  EXPECT_THAT(path.source_error->message, ::testing::HasSubstr("one0 port 1 is Ethernet"));
}

TEST(DoctorGather, APeerByLidIsReachedByAnInfiniBandPort) {
  const PathFacts path = gather_path(host_with(LinkLayer::kInfiniBand), {.dlid = 7});
  EXPECT_EQ(path.device, "one0");
  EXPECT_FALSE(path.source_error);
}

TEST(DoctorGather, WithoutAnActivePortThatIsSaid) {
  const PathFacts path = gather_path(HostFacts(), {.dlid = 7});
  ASSERT_TRUE(path.source_error);
  EXPECT_THAT(path.source_error->message, ::testing::HasSubstr("no device has an active port"));
}

TEST(DoctorGather, AnAddressWithALabelIsOfItsInterface) {
  in_own_namespace([] {
    add_wire();
    ip("address add 10.9.0.2/32 dev one label one:1");
    const std::vector<InterfaceFacts> interfaces = gather_interfaces();
    for (const InterfaceFacts& facts : interfaces) EXPECT_EQ(facts.index, ::if_nametoindex(facts.name.c_str()));
    const auto one = std::find_if(interfaces.begin(), interfaces.end(),
                                  [](const InterfaceFacts& facts) { return facts.name == "one"; });
    ASSERT_NE(one, interfaces.end());
    EXPECT_EQ(one->index, ::if_nametoindex("one"));
    EXPECT_TRUE(one->up);
    EXPECT_NE(one->mtu, 0U);
    const auto has = [&](std::uint32_t address, int prefix_length) {
      return std::any_of(one->addresses.begin(), one->addresses.end(), [&](const InterfaceAddress& there) {
        return there.gid == Gid::from_ipv4(address) && there.prefix_length == prefix_length;
      });
    };
    EXPECT_TRUE(has(0x0a090001, 24));
    EXPECT_TRUE(has(0x0a090002, 32));
  });
}

}  // namespace
}  // namespace verbena::rdma
