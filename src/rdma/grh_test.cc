#include "verbena/grh.h"

#include <array>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace verbena {
namespace {

using Bytes = std::array<std::byte, 40>;

constexpr std::uint32_t kPayload = 100;
constexpr std::uint32_t kByteLen = kPayload + 40;

void put16(Bytes& bytes, std::size_t at, std::uint32_t value) {
  bytes[at] = static_cast<std::byte>(value >> 8);
  bytes[at + 1] = static_cast<std::byte>(value);
}

void set_checksum(Bytes& bytes) {
  put16(bytes, 30, 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 20; i < 40; i += 2) {
    sum += (std::to_integer<std::uint32_t>(bytes[i]) << 8) | std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  put16(bytes, 30, ~sum);
}

// 10.1.2.3 -> 10.1.2.4 in the last 20 bytes; the first 20 as given.
Bytes ipv4_datagram(std::byte filler = std::byte{0}) {
  Bytes bytes;
  bytes.fill(filler);
  const std::array<std::uint8_t, 20> header{0x45, 0x68, 0, 0, 0, 1, 0x40, 0, 61, 17, 0, 0, 10, 1, 2, 3, 10, 1, 2, 4};
  for (std::size_t i = 0; i < header.size(); ++i) bytes[20 + i] = std::byte{header[i]};
  put16(bytes, 22, kPayload + 20 + 8 + 24);
  set_checksum(bytes);
  return bytes;
}

// 2001:db8::3 -> 2001:db8::4, traffic class 0x68, flow label 0xabcde.
Bytes ipv6_datagram(std::uint8_t next_header = 17) {
  Bytes bytes{};
  bytes[0] = std::byte{0x66};
  bytes[1] = std::byte{0x8a};
  put16(bytes, 2, 0xbcde);
  put16(bytes, 4, kPayload + 24 + (next_header == 17 ? 8 : 0));
  bytes[6] = std::byte{next_header};
  bytes[7] = std::byte{61};
  for (const std::size_t at : {std::size_t{8}, std::size_t{24}}) {
    put16(bytes, at, 0x2001);
    put16(bytes, at + 2, 0x0db8);
    bytes[at + 15] = std::byte{at == 8 ? std::uint8_t{3} : std::uint8_t{4}};
  }
  return bytes;
}

TEST(Grh, ReadsIpv4) {
  const Result<GrhView> view = parse_grh(ipv4_datagram(), kByteLen);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->ipv4);
  EXPECT_EQ(view->source, *parse_gid("10.1.2.3"));
  EXPECT_EQ(view->destination, *parse_gid("10.1.2.4"));
  EXPECT_EQ(view->traffic_class, 0x68);
  EXPECT_EQ(view->hop_limit, 61);
  EXPECT_EQ(view->flow_label, 0U);
}

TEST(Grh, ReadsIpv6) {
  const Result<GrhView> view = parse_grh(ipv6_datagram(), kByteLen);
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->ipv4);
  EXPECT_EQ(view->source, *parse_gid("2001:db8::3"));
  EXPECT_EQ(view->destination, *parse_gid("2001:db8::4"));
  EXPECT_EQ(view->traffic_class, 0x68);
  EXPECT_EQ(view->flow_label, 0xabcdeU);
  EXPECT_EQ(view->hop_limit, 61);
}

TEST(Grh, ReadsTheGrhOfInfiniBandAndRoceV1) {
  const Result<GrhView> view = parse_grh(ipv6_datagram(0x1b), kByteLen);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->source, *parse_gid("2001:db8::3"));
}

TEST(Grh, ImmediateDataAndPaddingFit) {
  for (std::uint32_t slack = 0; slack <= 7; ++slack) {
    Bytes bytes = ipv4_datagram(std::byte{0xff});
    put16(bytes, 22, kPayload + 52 + slack);
    set_checksum(bytes);
    EXPECT_TRUE(parse_grh(bytes, kByteLen)->ipv4) << slack;
  }
}

TEST(Grh, AZeroedChecksumIsStillIpv4) {
  Bytes bytes = ipv4_datagram();
  put16(bytes, 30, 0);
  EXPECT_TRUE(parse_grh(bytes, kByteLen)->ipv4);
}

TEST(Grh, AWrongChecksumAloneDoesNotMakeItIpv6) {
  Bytes bytes = ipv4_datagram();
  put16(bytes, 30, 0x1234);
  EXPECT_TRUE(parse_grh(bytes, kByteLen)->ipv4);
}

// The buffer was used before: by an IPv6 datagram of the same length, whose first 20 bytes are still there.
TEST(Grh, OldIpv6BytesInFrontDoNotFoolIt) {
  for (const bool checksum : {true, false}) {
    Bytes bytes = ipv6_datagram();
    const Bytes fresh = ipv4_datagram();
    std::copy(fresh.begin() + 20, fresh.end(), bytes.begin() + 20);
    if (!checksum) put16(bytes, 30, 0);
    const Result<GrhView> view = parse_grh(bytes, kByteLen);
    ASSERT_TRUE(view);
    EXPECT_TRUE(view->ipv4);
    EXPECT_EQ(view->source, *parse_gid("10.1.2.3"));
  }
}

// IPv6 addresses whose bytes stand where an IPv4 header would, and read like one.
Bytes ipv6_that_looks_like_ipv4() {
  Bytes bytes = ipv6_datagram();
  bytes[20] = std::byte{0x45};
  bytes[29] = std::byte{17};
  put16(bytes, 26, 0);
  return bytes;
}

TEST(Grh, Ipv6AddressesThatLookLikeIpv4DoNotFoolIt) {
  const Result<GrhView> view = parse_grh(ipv6_that_looks_like_ipv4(), kByteLen);
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->ipv4);
}

TEST(Grh, TheOwnAddressDecidesWhereBothReadingsHold) {
  Bytes bytes = ipv6_that_looks_like_ipv4();
  put16(bytes, 22, kPayload + 52);
  set_checksum(bytes);  // now the IPv4 reading is perfect
  const Gid own = parse_grh(bytes, kByteLen, [](const Gid& gid) { return !gid.is_ipv4_mapped(); })->destination;
  EXPECT_FALSE(own.is_ipv4_mapped());
  EXPECT_TRUE(parse_grh(bytes, kByteLen, [](const Gid& gid) { return gid.is_ipv4_mapped(); })->ipv4);
}

// Every way in which an IPv4 datagram was seen to arrive: what an earlier one left in the first 20 bytes, times what
// the NIC put into the checksum. The reading must not depend on either, nor on whether the own addresses are told.
TEST(Grh, Ipv4IsReadWhateverStandsInFrontAndWhateverTheChecksumIs) {
  Bytes longer = ipv6_datagram();
  put16(longer, 4, 4096);
  Bytes ib = ipv6_datagram(0x1b);
  Bytes shifted{};  // an IPv4 header at the very front
  const Bytes plain = ipv4_datagram();
  std::copy(plain.begin() + 20, plain.end(), shifted.begin());
  Bytes zeros{};
  Bytes ones{};
  ones.fill(std::byte{0xff});
  const std::array<Bytes, 6> fronts{zeros, ones, ipv6_datagram(), longer, ib, shifted};
  const auto is_own = [](const Gid& gid) { return gid == *parse_gid("10.1.2.4"); };
  for (std::size_t front = 0; front < fronts.size(); ++front) {
    for (const int checksum : {-1, 0, 0xffff, 0x1234}) {  // -1: the right one
      Bytes bytes = fronts[front];
      std::copy(plain.begin() + 20, plain.end(), bytes.begin() + 20);
      if (checksum >= 0) put16(bytes, 30, static_cast<std::uint32_t>(checksum));
      for (const bool told : {false, true}) {
        const Result<GrhView> view = told ? parse_grh(bytes, kByteLen, is_own) : parse_grh(bytes, kByteLen);
        ASSERT_TRUE(view) << "front " << front << ", checksum " << checksum;
        EXPECT_EQ(view->source, *parse_gid("10.1.2.3")) << "front " << front << ", checksum " << checksum;
        EXPECT_EQ(view->traffic_class, 0x68);
      }
    }
  }
}

// Any addresses: the last 20 bytes are theirs, and never make an IPv4 header of the right length by chance.
TEST(Grh, Ipv6IsReadWhateverItsAddresses) {
  constexpr std::uint32_t kSeed = 9;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    Bytes bytes = ipv6_datagram(random() % 2 == 0 ? 17 : 0x1b);
    for (std::size_t at = 8; at < 40; ++at) bytes[at] = static_cast<std::byte>(random());
    if (random() % 2 == 0) bytes[20] = std::byte{0x45};
    if (random() % 2 == 0) bytes[29] = std::byte{17};
    if (random() % 2 == 0) put16(bytes, 26, 0x4000);
    put16(bytes, 22, random() % 2 == 0 ? 0 : 0xffff);
    const Result<GrhView> view = parse_grh(bytes, kByteLen);
    ASSERT_TRUE(view);
    ASSERT_FALSE(view->ipv4) << "seed " << kSeed << ", round " << i;
  }
}

TEST(Grh, AMulticastDestinationIsOnesOwn) {
  Bytes bytes = ipv4_datagram(std::byte{0x60});
  bytes[36] = std::byte{224};
  const auto nothing = [](const Gid&) { return false; };
  EXPECT_EQ(parse_grh(bytes, kByteLen, nothing)->destination, *parse_gid("224.1.2.4"));
}

TEST(Grh, NeitherReadingIsAnError) {
  const Bytes zeros{};
  EXPECT_FALSE(parse_grh(zeros, kByteLen));
  Bytes tcp = ipv4_datagram();
  tcp[29] = std::byte{6};
  EXPECT_FALSE(parse_grh(tcp, kByteLen));
  Bytes options = ipv4_datagram();
  options[20] = std::byte{0x46};
  EXPECT_FALSE(parse_grh(options, kByteLen));
  Bytes fragment = ipv4_datagram();
  fragment[27] = std::byte{1};
  EXPECT_FALSE(parse_grh(fragment, kByteLen));
}

TEST(Grh, ByteLenBelow40IsRefused) {
  for (std::uint32_t length = 0; length < 40; ++length) EXPECT_FALSE(parse_grh(ipv4_datagram(), length));
  EXPECT_TRUE(parse_grh(ipv4_datagram(), 40));
}

TEST(Grh, AnyBytesGiveAnAnswerOrAnError) {
  constexpr std::uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    Bytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[0] = std::byte{0x60};
    if (random() % 2 == 0) bytes[20] = std::byte{0x45};
    const Result<GrhView> view = parse_grh(bytes, static_cast<std::uint32_t>(random() % 5000));
    if (view && view->ipv4) {
      EXPECT_TRUE(view->source.is_ipv4_mapped()) << "seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace verbena
