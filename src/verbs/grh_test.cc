#include "verbs/grh.h"

#include <array>

#include <gtest/gtest.h>

#include "base/byte_order.h"

namespace verbena::verbs {
namespace {

using Bytes = std::array<std::byte, kGrhSize>;

void put_ipv4(Bytes& bytes, std::uint32_t source, std::uint32_t destination) {
  std::byte* const header = bytes.data() + 20;
  store_be8(header, 0x45);
  store_be8(header + 1, 0x2a);
  store_be16(header + 2, 60);
  store_be8(header + 8, 63);
  store_be8(header + 9, 17);
  store_be32(header + 12, source);
  store_be32(header + 16, destination);
  store_be16(header + 10, 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += load_be16(header + i);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  store_be16(header + 10, ~sum & 0xffff);
}

Bytes ipv6_header(std::uint8_t next_header) {
  Bytes bytes{};
  store_be32(bytes.data(), 0x60000000 | 0x11u << 20 | 0x12345);
  store_be8(bytes.data() + 6, next_header);
  store_be8(bytes.data() + 7, 61);
  store_be8(bytes.data() + 8, 0xfd);
  store_be8(bytes.data() + 23, 1);
  store_be8(bytes.data() + 24, 0xfd);
  store_be8(bytes.data() + 39, 2);
  return bytes;
}

TEST(Grh, ReadsAnIpv4HeaderBehindTwentyZeroBytes) {
  Bytes bytes{};
  put_ipv4(bytes, 0x0a000001, 0x0a000002);
  GrhAddress address;
  ASSERT_EQ(GrhError::kNone, read_grh(bytes, address));
  EXPECT_EQ(Gid::from_ipv4(0x0a000001), address.remote);
  EXPECT_EQ(Gid::from_ipv4(0x0a000002), address.local);
  EXPECT_EQ(63, address.hop_limit);
  EXPECT_EQ(0x2a, address.traffic_class);
  EXPECT_EQ(0u, address.flow_label);
}

TEST(Grh, ReadsAnIpv6Header) {
  GrhAddress address;
  ASSERT_EQ(GrhError::kNone, read_grh(ipv6_header(17), address));
  EXPECT_EQ("fd00::1", to_string(address.remote));
  EXPECT_EQ("fd00::2", to_string(address.local));
  EXPECT_EQ(61, address.hop_limit);
  EXPECT_EQ(0x11, address.traffic_class);
  EXPECT_EQ(0x12345u, address.flow_label);
}

TEST(Grh, AnIpv4HeaderWithARightChecksumWinsOverVersionSixInTheFirstByte) {
  Bytes bytes = ipv6_header(17);
  put_ipv4(bytes, 0x0a000001, 0x0a000002);
  GrhAddress address;
  ASSERT_EQ(GrhError::kNone, read_grh(bytes, address));
  EXPECT_TRUE(address.remote.is_ipv4_mapped());
}

TEST(Grh, AnIpv4HeaderWithAWrongChecksumDoesNotWin) {
  Bytes bytes = ipv6_header(17);
  put_ipv4(bytes, 0x0a000001, 0x0a000002);
  bytes[30] ^= std::byte{1};
  GrhAddress address;
  ASSERT_EQ(GrhError::kNone, read_grh(bytes, address));
  EXPECT_FALSE(address.remote.is_ipv4_mapped());
}

TEST(Grh, RefusesWhatIsNeither) {
  GrhAddress address;
  EXPECT_EQ(GrhError::kUnknownProtocol, read_grh(Bytes{}, address));
  EXPECT_EQ(GrhError::kUnknownProtocol, read_grh(ipv6_header(6), address));
  EXPECT_EQ(GrhError::kUnknownProtocol, read_grh(ipv6_header(0x1b), address));
}

TEST(Grh, RefusesWhatWentToAGroup) {
  Bytes bytes{};
  put_ipv4(bytes, 0x0a000001, 0xe0000105);
  GrhAddress address;
  EXPECT_EQ(GrhError::kMulticast, read_grh(bytes, address));
  Bytes six = ipv6_header(17);
  six[24] = std::byte{0xff};
  EXPECT_EQ(GrhError::kMulticast, read_grh(six, address));
}

TEST(Grh, OnInfinibandTheNextHeaderIsThatOfIba) {
  GrhAddress address;
  ASSERT_EQ(GrhError::kNone, read_infiniband_grh(ipv6_header(0x1b), address));
  EXPECT_EQ(0x12345u, address.flow_label);
  EXPECT_EQ(0x11, address.traffic_class);
  EXPECT_EQ(GrhError::kUnknownProtocol, read_infiniband_grh(ipv6_header(17), address));
  EXPECT_EQ(GrhError::kUnknownProtocol, read_infiniband_grh(Bytes{}, address));
}

}  // namespace
}  // namespace verbena::verbs
