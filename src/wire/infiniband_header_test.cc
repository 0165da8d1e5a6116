#include "wire/infiniband_header.h"

#include <vector>

#include <gtest/gtest.h>

#include "wire/icrc.h"
#include "wire/packet.h"

namespace verbena::wire {
namespace {

using Bytes = std::vector<std::byte>;

Envelope by_lid() {
  Envelope envelope;
  envelope.hop_limit = 64;
  envelope.link = {.flow_label = 0, .source_lid = 0x1234, .destination_lid = 0x0007, .service_level = 5};
  return envelope;
}

Envelope with_grh() {
  Envelope envelope = by_lid();
  envelope.source = *parse_gid("fe80::2:c903:0:1");
  envelope.destination = *parse_gid("fe80::2:c903:0:2");
  envelope.traffic_class = 0xa5;
  envelope.hop_limit = 3;
  envelope.link.flow_label = 0x54321;
  envelope.link.has_grh = true;
  return envelope;
}

Bytes packet_of(const Envelope& envelope, std::size_t size) {
  const InfinibandHeader header(envelope, size);
  Bytes packet(header.bytes().begin(), header.bytes().end());
  packet.resize(packet.size() + size);
  return packet;
}

std::uint8_t at(const Bytes& packet, std::size_t index) {
  return std::to_integer<std::uint8_t>(packet[index]);
}

TEST(InfinibandHeader, LaysTheLrhOutAsTheSpecificationDraws) {
  const Bytes packet = packet_of(by_lid(), 24);
  const std::array<std::uint8_t, kLrhSize> wanted{0x00, 0x52, 0x00, 0x07, 0x00, 8, 0x12, 0x34};
  for (std::size_t i = 0; i < kLrhSize; ++i) EXPECT_EQ(at(packet, i), wanted[i]) << i;
}

TEST(InfinibandHeader, LaysTheGrhOutAsTheSpecificationDraws) {
  const Bytes packet = packet_of(with_grh(), 24);
  EXPECT_EQ(at(packet, 1), 0x53);
  EXPECT_EQ(at(packet, 5), 18);
  const std::array<std::uint8_t, 8> wanted{0x6a, 0x55, 0x43, 0x21, 0x00, 24, kNextHeaderIba, 3};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(at(packet, kLrhSize + i), wanted[i]) << i;
  EXPECT_EQ(at(packet, kLrhSize + 23), 1);
  EXPECT_EQ(at(packet, kLrhSize + 39), 2);
}

TEST(InfinibandHeader, IsReadBackAsItWasWritten) {
  for (Envelope envelope : {by_lid(), with_grh()}) {
    InfinibandHeaderView view;
    ASSERT_EQ(decode_infiniband_header(packet_of(envelope, 24), true, view), Drop::kNone);
    EXPECT_EQ(view.envelope, envelope);
    EXPECT_EQ(view.size, envelope.link.has_grh ? kMaxInfinibandHeaderSize : kLrhSize);
  }
}

TEST(InfinibandHeader, CountsAnIcrcThatIsNotThere) {
  Bytes packet = packet_of(with_grh(), 24);
  packet.resize(packet.size() - kIcrcSize);
  InfinibandHeaderView view;
  EXPECT_EQ(decode_infiniband_header(packet, false, view), Drop::kNone);
  EXPECT_EQ(decode_infiniband_header(packet, true, view), Drop::kTruncated);
}

TEST(InfinibandHeader, RefusesEveryTruncation) {
  for (const Envelope& envelope : {by_lid(), with_grh()}) {
    const Bytes packet = packet_of(envelope, 24);
    for (std::size_t size = 0; size < packet.size(); ++size) {
      InfinibandHeaderView view;
      EXPECT_EQ(decode_infiniband_header(std::span(packet).first(size), true, view), Drop::kTruncated) << size;
    }
  }
}

TEST(InfinibandHeader, RefusesAnotherLinkVersionAndWhatIsNoIba) {
  InfinibandHeaderView view;
  Bytes packet = packet_of(by_lid(), 24);
  packet[0] = std::byte{1};
  EXPECT_EQ(decode_infiniband_header(packet, true, view), Drop::kBadTransportVersion);
  packet = packet_of(by_lid(), 24);
  packet[1] &= std::byte{0xfc};  // raw
  EXPECT_EQ(decode_infiniband_header(packet, true, view), Drop::kUnknownOpcode);
  packet = packet_of(by_lid(), 24);
  packet[2] = packet[3] = std::byte{0};
  EXPECT_EQ(decode_infiniband_header(packet, true, view), Drop::kUnknownLid);
  packet = packet_of(with_grh(), 24);
  packet[kLrhSize + 6] = std::byte{17};
  EXPECT_EQ(decode_infiniband_header(packet, true, view), Drop::kUnknownOpcode);
}

TEST(InfinibandHeader, OnlyLidsFrom0xc000To0xfffeAreOfMulticast) {
  EXPECT_FALSE(is_multicast_lid(0xbfff));
  EXPECT_TRUE(is_multicast_lid(0xc000));
  EXPECT_TRUE(is_multicast_lid(0xfffe));
  EXPECT_FALSE(is_multicast_lid(kPermissiveLid));
}

// What a switch or router may change is not covered; every other bit is.
TEST(InfinibandIcrc, CoversEveryBitButThoseTheNetworkChanges) {
  for (const Envelope& envelope : {by_lid(), with_grh()}) {
    Bytes packet = packet_of(envelope, 24);
    const std::size_t headers = packet.size() - 24;
    const auto icrc_of = [&](const Bytes& bytes) {
      const std::span all(bytes);
      const std::span<const std::byte> rest[] = {all.subspan(headers, 20)};
      return compute_infiniband_icrc(all.first(headers), rest);
    };
    const auto icrc = icrc_of(packet);
    store_icrc(icrc, std::span(packet).last<kIcrcSize>());
    EXPECT_TRUE(verify_infiniband_icrc(std::span(packet).first(headers), std::span(packet).subspan(headers)));
    for (std::size_t bit = 0; bit < (packet.size() - kIcrcSize) * 8; ++bit) {
      const std::size_t byte = bit / 8;
      const bool lane = bit < 4;
      const bool bth = byte == headers + 4;
      const bool grh =
          envelope.link.has_grh && ((bit >= kLrhSize * 8 + 4 && byte < kLrhSize + 4) || byte == kLrhSize + 7);
      Bytes changed = packet;
      changed[byte] ^= std::byte{static_cast<unsigned char>(0x80 >> bit % 8)};
      EXPECT_EQ(icrc_of(changed) == icrc, lane || bth || grh) << bit;
    }
  }
}

// Computed byte by byte from the definition: CRC-32, first register all ones, over the masked packet.
TEST(InfinibandIcrc, IsTheCrcOfTheMaskedPacket) {
  const Bytes packet = packet_of(by_lid(), 24);
  Bytes masked(packet.begin(), packet.end() - kIcrcSize);
  masked[0] |= std::byte{0xf0};
  masked[kLrhSize + 4] = std::byte{0xff};
  std::uint32_t crc = 0xffffffff;
  for (const std::byte byte : masked) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  const std::span<const std::byte> rest[] = {std::span(packet).subspan(kLrhSize, 20)};
  EXPECT_EQ(compute_infiniband_icrc(std::span(packet).first(kLrhSize), rest), ~crc);
}

}  // namespace
}  // namespace verbena::wire
