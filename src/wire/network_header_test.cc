#include "wire/network_header.h"

#include <gtest/gtest.h>

#include "wire/field_reader.h"
#include "wire/test_packets.h"

namespace verbena::wire {
namespace {

using test::Bytes;
using test::bytes_of_hex;

Envelope v4_envelope() {
  return {Gid::from_ipv4(0x0a090001), Gid::from_ipv4(0x0a090002), 0xd2c5, 0x6a, 64};
}

Envelope v6_envelope() {
  return {*parse_gid("fd00:9::1"), *parse_gid("fd00:9::2"), 0xc0de, 0xb8, 63};
}

Bytes header_of(const Envelope& envelope, std::size_t udp_payload_size) {
  const NetworkHeader header(envelope, udp_payload_size);
  return {header.bytes().begin(), header.bytes().end()};
}

// The rule of RFC 791, by the book: all words and the carries add up to all ones.
bool checksum_is_right(std::span<const std::byte> header) {
  std::uint32_t sum = 0;
  FieldReader words(header.data());
  for (std::size_t i = 0; i < header.size() / 2; ++i) sum += words.u16();
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

TEST(NetworkHeader, Ipv4StandsAsThatOfAnUnconnectedSocket) {
  EXPECT_EQ(header_of(v4_envelope(), 32),
            bytes_of_hex("456a003c 00004000 40112633 0a090001 0a090002  d2c512b7 00280000"));
  EXPECT_EQ(network_header_size(v4_envelope()), 28U);
}

TEST(NetworkHeader, Ipv6HasNoFlowLabelAndNoUdpChecksum) {
  EXPECT_EQ(header_of(v6_envelope(), 32), bytes_of_hex("6b800000 0028113f fd000009000000000000000000000001"
                                                       "fd000009000000000000000000000002  c0de12b7 00280000"));
  EXPECT_EQ(network_header_size(v6_envelope()), 48U);
}

TEST(NetworkHeader, IsIpv4OnlyWhereBothEndsAre) {
  EXPECT_TRUE(is_ipv4(v4_envelope()));
  Envelope mixed = v4_envelope();
  mixed.source = v6_envelope().source;
  EXPECT_FALSE(is_ipv4(mixed));
  EXPECT_EQ(header_of(mixed, 0).size(), 48U);
}

TEST(NetworkHeader, Ipv4ChecksumIsAlwaysRight) {
  constexpr std::uint64_t kSeed = 31;
  test::Random random(kSeed);
  for (int round = 0; round < 100'000; ++round) {
    const Bytes bytes = header_of(test::random_envelope(random, true), random() % 9000);
    ASSERT_TRUE(checksum_is_right(std::span(bytes).first(kIpv4Size))) << "seed " << kSeed << " round " << round;
  }
}

TEST(NetworkHeader, ReadsBackWhatItWrites) {
  constexpr std::uint64_t kSeed = 37;
  test::Random random(kSeed);
  for (int round = 0; round < 20'000; ++round) {
    const Envelope envelope = test::random_envelope(random, (round & 1) != 0);
    const std::size_t size = random() % 200;
    Bytes packet = header_of(envelope, size);
    const std::size_t header_size = packet.size();
    packet.resize(packet.size() + size + random() % 20);  // some Ethernet padding
    const auto view = parse_network_header(packet);
    ASSERT_TRUE(view) << "seed " << kSeed << " round " << round;
    ASSERT_EQ(view->envelope, envelope) << "seed " << kSeed << " round " << round;
    EXPECT_EQ(view->destination_port, kRoceUdpPort);
    EXPECT_TRUE(view->checksum_valid);
    EXPECT_EQ(view->dont_fragment, is_ipv4(envelope));
    EXPECT_EQ(view->header.size(), header_size);
    EXPECT_EQ(view->udp_payload.data(), packet.data() + header_size);
    EXPECT_EQ(view->udp_payload.size(), size);
  }
}

TEST(NetworkHeader, ParserRefusesEveryTruncation) {
  for (const Envelope& envelope : {v4_envelope(), v6_envelope()}) {
    Bytes packet = header_of(envelope, 24);
    packet.resize(packet.size() + 24);
    EXPECT_TRUE(parse_network_header(packet));
    for (std::size_t size = 0; size < packet.size(); ++size) {
      const Bytes shorter(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(parse_network_header(shorter)) << size;
    }
  }
}

struct Spoilt {
  const char* what;
  bool ipv4;
  std::size_t at;
  std::uint8_t value;
};

TEST(NetworkHeader, ParserRefusesWhatIsNotAWholeUdpDatagram) {
  const Spoilt cases[] = {
      {"IPv4 options", true, 0, 0x46},
      {"version 5", true, 0, 0x55},
      {"more fragments", true, 6, 0x20},
      {"fragment offset", true, 7, 0x01},
      {"TCP", true, 9, 6},
      {"total length below the header", true, 3, 19},
      {"UDP length below 8", true, 25, 7},
      {"UDP longer than IP", true, 25, 33},
      {"hop-by-hop options", false, 6, 0},
      {"IPv6 TCP", false, 6, 6},
      {"IPv6 payload below 8", false, 5, 7},
      {"IPv6 UDP longer than payload", false, 45, 33},
  };
  for (const Spoilt& spoilt : cases) {
    Bytes packet = header_of(spoilt.ipv4 ? v4_envelope() : v6_envelope(), 24);
    packet.resize(packet.size() + 60);
    ASSERT_TRUE(parse_network_header(packet));
    packet[spoilt.at] = std::byte{spoilt.value};
    EXPECT_FALSE(parse_network_header(packet)) << spoilt.what;
  }
}

TEST(NetworkHeader, ParserTellsIdFlagsFlowLabelAndChecksums) {
  Bytes v4 = header_of(v4_envelope(), 0);
  v4[4] = std::byte{0xbe};
  v4[5] = std::byte{0xef};
  v4[6] = std::byte{0};
  v4[26] = std::byte{0x12};
  const auto four = parse_network_header(v4);
  ASSERT_TRUE(four);
  EXPECT_EQ(four->ipv4_id, 0xbeef);
  EXPECT_FALSE(four->dont_fragment);
  EXPECT_FALSE(four->checksum_valid);
  EXPECT_EQ(four->udp_checksum, 0x1200);
  Bytes v6 = header_of(v6_envelope(), 0);
  v6[1] |= std::byte{0x0a};
  v6[3] = std::byte{0xbc};
  const auto six = parse_network_header(v6);
  ASSERT_TRUE(six);
  EXPECT_EQ(six->flow_label, 0xa00bcU);
  EXPECT_EQ(six->envelope.traffic_class, 0xb8);
}

TEST(Grh, OfIpv4IsTwentyZeroesAndTheHeader) {
  std::array<std::byte, kGrhSize> grh;
  grh.fill(std::byte{0xee});
  write_grh(v4_envelope(), 32, grh);
  EXPECT_EQ(Bytes(grh.begin(), grh.end()),
            bytes_of_hex("0000000000000000000000000000000000000000 456a003c 00004000 40112633 0a090001 0a090002"));
}

TEST(Grh, OfIpv6IsTheHeader) {
  std::array<std::byte, kGrhSize> grh;
  grh.fill(std::byte{0xee});
  write_grh(v6_envelope(), 32, grh);
  EXPECT_EQ(Bytes(grh.begin(), grh.end()),
            bytes_of_hex("6b800000 0028113f fd000009000000000000000000000001 fd000009000000000000000000000002"));
}

// How ibv_init_ah_from_wc and rdma_cm tell the families apart.
TEST(Grh, IsToldApartByVersionAndChecksum) {
  constexpr std::uint64_t kSeed = 41;
  test::Random random(kSeed);
  for (int round = 0; round < 20'000; ++round) {
    const bool ipv4 = (round & 1) != 0;
    std::array<std::byte, kGrhSize> grh;
    write_grh(test::random_envelope(random, ipv4), random() % 4200, grh);
    const auto version = std::to_integer<unsigned>(grh[0]) >> 4;
    ASSERT_EQ(version, ipv4 ? 0U : 6U) << "seed " << kSeed << " round " << round;
    if (ipv4) {
      ASSERT_EQ(grh[20], std::byte{0x45});
      ASSERT_TRUE(checksum_is_right(std::span(grh).last(20))) << "seed " << kSeed << " round " << round;
    }
  }
}

}  // namespace
}  // namespace verbena::wire
