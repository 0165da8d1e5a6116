#include "wire/ethernet_frame.h"

#include <string>

#include <gtest/gtest.h>

#include "wire/test_packets.h"

namespace verbena::wire {
namespace {

using test::Bytes;
using test::bytes_of_hex;

const std::string kMacs = "0211 2233 4455 0266 7788 99aa";
const std::string kUdpOverIpv4 =
    "456a0020 00004000 40110000 0a090001 0a090002  d2c512b7 000c0000 01020304";  // DF, TOS 6a, TTL 40
const std::string kTcpOverIpv6 =
    "6b812345 0014063f fd000009000000000000000000000001 fd000009000000000000000000000002  0050c0de 00000000";

FrameFields fields_of(const std::string& hex) {
  const auto fields = read_frame(bytes_of_hex(hex));
  EXPECT_TRUE(fields);
  return fields.value_or(FrameFields{});
}

FrameFields udp_over_ipv4() {
  FrameFields fields;
  fields.destination = {{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};
  fields.source = {{0x02, 0x66, 0x77, 0x88, 0x99, 0xaa}};
  fields.ether_type = kEtherTypeIpv4;
  fields.ip_version = 4;
  fields.ip_source = {10, 9, 0, 1};
  fields.ip_destination = {10, 9, 0, 2};
  fields.next_header = kProtocolUdp;
  fields.traffic_class = 0x6a;
  fields.hop_limit = 0x40;
  fields.ipv4_flags = kIpv4DontFragment;
  fields.transport = kProtocolUdp;
  fields.source_port = 0xd2c5;
  fields.destination_port = 4791;
  return fields;
}

TEST(EthernetFrame, ReadsUdpOverIpv4) {
  EXPECT_EQ(fields_of(kMacs + "0800" + kUdpOverIpv4), udp_over_ipv4());
}

TEST(EthernetFrame, ReadsTcpOverIpv6) {
  const FrameFields fields = fields_of(kMacs + "86dd" + kTcpOverIpv6);
  EXPECT_EQ(fields.ip_version, 6);
  EXPECT_EQ(fields.traffic_class, 0xb8);
  EXPECT_EQ(fields.flow_label, 0x12345U);
  EXPECT_EQ(fields.next_header, kProtocolTcp);
  EXPECT_EQ(fields.hop_limit, 0x3f);
  EXPECT_EQ(fields.ip_source[15], 1);
  EXPECT_EQ(fields.ip_destination[15], 2);
  EXPECT_EQ(fields.transport, kProtocolTcp);
  EXPECT_EQ(fields.source_port, 80);
  EXPECT_EQ(fields.destination_port, 0xc0de);
}

TEST(EthernetFrame, TheTypeIsThatBehindTheLastTagAndTheTagTheFirst) {
  FrameFields expected = udp_over_ipv4();
  expected.is_tagged = 1;
  expected.vlan_tag = 0x6064;
  EXPECT_EQ(fields_of(kMacs + "8100 6064 0800" + kUdpOverIpv4), expected);
  EXPECT_EQ(fields_of(kMacs + "88a8 6064 8100 0001 0800" + kUdpOverIpv4), expected);
}

TEST(EthernetFrame, IpOptionsStandBeforeThePorts) {
  const FrameFields fields =
      fields_of(kMacs + "0800" + "46000024 00000000 40110000 0a090001 0a090002 01010101  d2c512b7 000c0000");
  EXPECT_EQ(fields.source_port, 0xd2c5);
  EXPECT_EQ(fields.transport, kProtocolUdp);
}

TEST(EthernetFrame, OnlyTheFirstFragmentHasPorts) {
  const FrameFields first = fields_of(kMacs + "0800" + "45000020 00002000 40110000 0a090001 0a090002 d2c512b7");
  EXPECT_EQ(first.ipv4_flags, kIpv4MoreFragments);
  EXPECT_EQ(first.transport, kProtocolUdp);
  const FrameFields later = fields_of(kMacs + "0800" + "45000020 00000001 40110000 0a090001 0a090002 d2c512b7");
  EXPECT_EQ(later.transport, 0);
  EXPECT_EQ(later.source_port, 0);
  EXPECT_EQ(later.next_header, kProtocolUdp);

  const std::string addresses = "fd000009000000000000000000000001 fd000009000000000000000000000002";
  const std::string six = kMacs + "86dd 60000000 00102c40" + addresses;
  EXPECT_EQ(fields_of(six + "11000001 00000000 d2c512b7").transport, kProtocolUdp);
  EXPECT_EQ(fields_of(six + "11000009 00000000 d2c512b7").transport, 0);
}

TEST(EthernetFrame, ExtensionHeadersStandBeforeThePorts) {
  const std::string addresses = "fd000009000000000000000000000001 fd000009000000000000000000000002";
  const FrameFields fields = fields_of(kMacs + "86dd 60000000 00200040" + addresses +
                                       "3c010000 00000000 00000000 00000000" + "06000000 00000000" + "0050c0de");
  EXPECT_EQ(fields.next_header, 0);
  EXPECT_EQ(fields.transport, kProtocolTcp);
  EXPECT_EQ(fields.source_port, 80);
}

// Whatever is cut off, what is left is told and nothing behind the end is read (a sanitizer sees to that).
TEST(EthernetFrame, EveryTruncationSaysWhatItHolds) {
  for (const std::string& packet : {"0800" + kUdpOverIpv4, "86dd" + kTcpOverIpv6, "8100 6064 0800" + kUdpOverIpv4}) {
    const Bytes whole = bytes_of_hex(kMacs + packet);
    const FrameFields all = *read_frame(whole);
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto fields = read_frame(cut);
      ASSERT_EQ(fields.has_value(), size >= kEthernetSize) << size;
      if (!fields) continue;
      EXPECT_EQ(fields->destination, all.destination);
      EXPECT_TRUE(fields->transport == 0 || fields->destination_port == all.destination_port) << size;
    }
  }
}

TEST(EthernetFrame, WrongVersionsAreNoIp) {
  EXPECT_EQ(fields_of(kMacs + "86dd" + kUdpOverIpv4 + kUdpOverIpv4).ip_version, 0);
  EXPECT_EQ(fields_of(kMacs + "0800" + kTcpOverIpv6).ip_version, 0);
  EXPECT_EQ(fields_of(kMacs + "0800" + "44000020 00004000 40110000 0a090001 0a090002").ip_version, 0);
}

TEST(EthernetFrame, GroupsAreToldByTheFirstBit) {
  EXPECT_TRUE(is_group({{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}));
  EXPECT_TRUE(is_group({{0x33, 0x33, 0, 0, 0, 1}}));
  EXPECT_FALSE(is_group({{0x02, 0, 0, 0, 0, 1}}));
}

}  // namespace
}  // namespace verbena::wire
