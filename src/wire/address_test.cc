#include <set>

#include <gtest/gtest.h>

#include "wire/mac_address.h"
#include "wire/mtu.h"
#include "wire/multicast.h"
#include "wire/source_port.h"

namespace verbena::wire {
namespace {

TEST(SourcePort, FoldsAFlowLabelIntoTheDynamicPorts) {
  EXPECT_EQ(source_port_of_flow_label(0), 0xc000);
  EXPECT_EQ(source_port_of_flow_label(0x00001), 0xc001);
  EXPECT_EQ(source_port_of_flow_label(0x03fff), 0xffff);
  EXPECT_EQ(source_port_of_flow_label(0x04000), 0xc001);
  EXPECT_EQ(source_port_of_flow_label(0xfc000), 0xc03f);
  EXPECT_EQ(source_port_of_flow_label(0xfffff), 0xffc0);
  EXPECT_EQ(source_port_of_flow_label(0x12345), 0xe341);
}

TEST(SourcePort, IsNeverBelowTheDynamicPorts) {
  for (std::uint32_t label = 0; label <= kFlowLabelMask; ++label) {
    ASSERT_GE(source_port_of_flow_label(label), kFirstSourcePort);
  }
  for (std::uint32_t qpn = 0; qpn <= Qpn::kMask; qpn += 7) ASSERT_GE(source_port_of_qpn(Qpn(qpn)), kFirstSourcePort);
}

TEST(SourcePort, OfAConnectionWithoutLabelComesFromItsTwoEnds) {
  // Their product, folded by 20 and by 40 bits.
  constexpr std::uint64_t kProduct = 0x123456ULL * 0x654321ULL;
  constexpr std::uint64_t kOnce = kProduct ^ (kProduct >> 20);
  constexpr auto kLabel = static_cast<std::uint32_t>((kOnce ^ (kOnce >> 40)) & 0xfffff);
  EXPECT_EQ(flow_label_of(Qpn(0x123456), Qpn(0x654321)), kLabel);
  EXPECT_EQ(flow_label_of(Qpn(17), Qpn(18)), 306U);
  EXPECT_EQ(flow_label_of(Qpn(17), Qpn(18)), flow_label_of(Qpn(18), Qpn(17)));
  EXPECT_EQ(source_port(0, Qpn(17), Qpn(18)), 0xc000 + 306);
  EXPECT_EQ(source_port(0x00001, Qpn(17), Qpn(18)), 0xc001);
  EXPECT_EQ(source_port(0xfff00000, Qpn(17), Qpn(18)), 0xc000 + 306);
}

TEST(SourcePort, OfDatagramsSpreadsQueuePairs) {
  std::set<std::uint16_t> ports;
  for (std::uint32_t qpn = 0; qpn < 1000; ++qpn) ports.insert(source_port_of_qpn(Qpn(qpn)));
  EXPECT_GT(ports.size(), 950U);
}

TEST(Multicast, Ipv4GroupIsItsMappedGid) {
  const auto mgid = mgid_of_ipv4_group(0xefc00a01);
  ASSERT_TRUE(mgid);
  EXPECT_EQ(to_string(*mgid), "::ffff:239.192.10.1");
  EXPECT_EQ(ipv4_group_of_mgid(*mgid), 0xefc00a01U);
  EXPECT_FALSE(mgid_of_ipv4_group(0x0a000001));
  EXPECT_FALSE(mgid_of_ipv4_group(0xf0000000));
  EXPECT_TRUE(mgid_of_ipv4_group(0xe0000000));
  EXPECT_FALSE(ipv4_group_of_mgid(*parse_gid("10.0.0.1")));
  EXPECT_FALSE(ipv4_group_of_mgid(*parse_gid("ff0e::ffff:239.192.10.1")));
}

TEST(Multicast, GroupHasItsEthernetAddress) {
  EXPECT_EQ(mac_of_group(*parse_gid("239.192.10.1")), (MacAddress{{0x01, 0x00, 0x5e, 0x40, 0x0a, 0x01}}));
  EXPECT_EQ(mac_of_group(*parse_gid("224.128.0.1")), (MacAddress{{0x01, 0x00, 0x5e, 0x00, 0x00, 0x01}}));
  EXPECT_EQ(mac_of_group(*parse_gid("ff0e::1:ff28:9c5a")), (MacAddress{{0x33, 0x33, 0xff, 0x28, 0x9c, 0x5a}}));
  EXPECT_FALSE(mac_of_group(*parse_gid("10.0.0.1")));
  EXPECT_FALSE(mac_of_group(*parse_gid("fe80::1")));
}

TEST(MacAddress, GivesALinkLocalGid) {
  EXPECT_EQ(to_string(link_local_gid({{0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde}})), "fe80::3656:78ff:fe9a:bcde");
  EXPECT_EQ(to_string(link_local_gid({{0x02, 0x42, 0xac, 0x11, 0x00, 0x02}})), "fe80::42:acff:fe11:2");
}

TEST(Mtu, NumbersAreThoseOfVerbs) {
  constexpr std::uint32_t kBytes[] = {256, 512, 1024, 2048, 4096};
  for (std::uint32_t number = 1; number <= 5; ++number) {
    const auto mtu = mtu_of_number(number);
    ASSERT_TRUE(mtu);
    EXPECT_EQ(static_cast<std::uint32_t>(*mtu), number);
    EXPECT_EQ(byte_count(*mtu), kBytes[number - 1]);
    EXPECT_EQ(mtu_of_bytes(kBytes[number - 1]), mtu);
  }
  for (const std::uint32_t wrong : {0U, 6U, 257U, 0xffffffffU}) EXPECT_FALSE(mtu_of_number(wrong));
  for (const std::uint32_t wrong : {0U, 255U, 257U, 1500U, 8192U}) EXPECT_FALSE(mtu_of_bytes(wrong));
}

TEST(Mtu, OfAnInterfaceLeavesRoomForTheHeaders) {
  EXPECT_EQ(mtu_of_interface(1500), Mtu::k1024);
  EXPECT_EQ(mtu_of_interface(4175), Mtu::k2048);
  EXPECT_EQ(mtu_of_interface(4176), Mtu::k4096);
  EXPECT_EQ(mtu_of_interface(9000), Mtu::k4096);
  EXPECT_EQ(mtu_of_interface(65536), Mtu::k4096);
  EXPECT_EQ(mtu_of_interface(0xffffffff), Mtu::k4096);
  EXPECT_EQ(mtu_of_interface(1103), Mtu::k512);
  EXPECT_EQ(mtu_of_interface(1104), Mtu::k1024);
  EXPECT_EQ(mtu_of_interface(68), Mtu::k256);
}

}  // namespace
}  // namespace verbena::wire
