#include "wire/packet.h"

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "wire/test_packets.h"

namespace verbena::wire {
namespace {

using test::Bytes;

// Decodes from an allocation of exactly that size, so that AddressSanitizer sees a read past the end.
Drop decode_exactly(std::span<const std::byte> bytes, bool has_icrc, Packet& packet) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const Drop drop = decode_packet({copy.get(), bytes.size()}, has_icrc, packet);
  packet.payload = {};
  return drop;
}

// Runs `check(opcode, has_icrc)` for every opcode of the table, in both forms.
template <class Check>
void for_every_opcode(Check check) {
  for (const Opcode opcode : test::known_opcodes()) {
    for (const bool has_icrc : {false, true}) {
      SCOPED_TRACE(std::string(row_of(opcode).name) + (has_icrc ? " with ICRC" : " without ICRC"));
      check(opcode, has_icrc);
    }
  }
}

void round_trips(Opcode opcode, bool has_icrc) {
  constexpr std::uint64_t kSeed = 7;
  test::Random random(kSeed);
  for (std::size_t size = 0; size < 300; ++size) {
    const Bytes payload = test::random_bytes(random, size);
    const Packet sent = test::random_packet(random, opcode, payload);
    const Bytes bytes = test::whole(sent, has_icrc);
    ASSERT_EQ(bytes.size(), udp_payload_size(opcode, size, has_icrc));
    ASSERT_EQ(bytes.size() % 4, 0U);
    Packet received;
    ASSERT_EQ(decode_packet(bytes, has_icrc, received), Drop::kNone) << "seed " << kSeed << " size " << size;
    ASSERT_TRUE(test::same(sent, received)) << "seed " << kSeed << " size " << size;
    ASSERT_EQ(test::whole(received, has_icrc), bytes);
  }
}

TEST(EveryOpcode, RoundTripsWithEveryFieldAndEveryPad) {
  for_every_opcode(round_trips);
}

void refuses_every_truncation(Opcode opcode, bool has_icrc) {
  test::Random random(11);
  const Bytes payload = test::random_bytes(random, 10);  // two bytes of pad
  const Bytes bytes = test::whole(test::random_packet(random, opcode, payload), has_icrc);
  const std::size_t shortest = row_of(opcode).header_size + (has_icrc ? kIcrcSize : 0);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Packet packet;
    const Drop drop = decode_exactly(std::span(bytes).first(size), has_icrc, packet);
    if (size < shortest) {
      EXPECT_EQ(drop, Drop::kTruncated) << size;
    } else if (size == shortest || size % 4 != 0) {
      EXPECT_EQ(drop, Drop::kBadPadCount) << size;
    } else {
      // Four or eight bytes of payload and pad are left: well-formed but for the ICRC.
      EXPECT_EQ(drop, Drop::kNone) << size;
    }
  }
}

TEST(EveryOpcode, RefusesEveryTruncation) {
  for_every_opcode(refuses_every_truncation);
}

void refuses_other_versions(Opcode opcode, bool has_icrc) {
  test::Random random(13);
  for (std::uint8_t version = 1; version < 16; ++version) {
    Packet sent = test::random_packet(random, opcode, {});
    sent.bth.transport_version = version;
    Packet received;
    EXPECT_EQ(decode_packet(test::whole(sent, has_icrc), has_icrc, received), Drop::kBadTransportVersion);
  }
}

TEST(EveryOpcode, RefusesOtherTransportVersions) {
  for_every_opcode(refuses_other_versions);
}

void refuses_missing_pad(Opcode opcode, bool has_icrc) {
  test::Random random(17);
  Bytes bytes = test::whole(test::random_packet(random, opcode, {}), has_icrc);
  for (unsigned pad = 1; pad < 4; ++pad) {
    bytes[1] = static_cast<std::byte>(pad << 4);
    Packet packet;
    EXPECT_EQ(decode_exactly(bytes, has_icrc, packet), Drop::kBadPadCount);
  }
}

TEST(EveryOpcode, RefusesPadThatIsNotThere) {
  for_every_opcode(refuses_missing_pad);
}

void encodes_only_with_room(Opcode opcode, bool /*has_icrc*/) {
  test::Random random(19);
  const Packet packet = test::random_packet(random, opcode, {});
  const std::size_t needed = row_of(opcode).header_size;
  for (std::size_t room = 0; room <= kMaxHeaderSize; ++room) {
    Bytes out(room);
    EXPECT_EQ(encode_headers(packet, out), room < needed ? 0 : needed);
  }
}

TEST(EveryOpcode, EncodesOnlyWhereThereIsRoom) {
  for_every_opcode(encodes_only_with_room);
}

TEST(Packet, UnknownOpcodesAreRefusedBothWays) {
  int unknown = 0;
  for (int value = 0; value < 256; ++value) {
    const auto opcode = static_cast<Opcode>(value);
    if (row_of(opcode).is_known()) continue;
    ++unknown;
    Bytes bytes(64);
    bytes[0] = static_cast<std::byte>(value);
    Packet packet;
    EXPECT_EQ(decode_packet(bytes, true, packet), Drop::kUnknownOpcode) << value;
    packet.bth.opcode = opcode;
    EXPECT_EQ(encode_headers(packet, bytes), 0U) << value;
  }
  EXPECT_EQ(unknown, 256 - 66);
}

TEST(Packet, PayloadPointsIntoTheBytesAndLeavesPadAndIcrcOut) {
  const Bytes payload = test::bytes_of_hex("0102030405");
  Packet sent;
  sent.bth.opcode = Opcode::kUdSendOnly;
  sent.payload = payload;
  const Bytes bytes = test::whole(sent, true);
  Packet received;
  ASSERT_EQ(decode_packet(bytes, true, received), Drop::kNone);
  EXPECT_EQ(received.payload.data(), bytes.data() + 20);
  EXPECT_EQ(received.payload.size(), 5U);
}

TEST(Packet, PadCountBringsToAMultipleOfFour) {
  for (std::size_t size = 0; size < 9000; ++size) {
    EXPECT_LE(pad_count(size), kMaxPad);
    EXPECT_EQ((size + pad_count(size)) % 4, 0U);
    EXPECT_EQ(pad_bytes(size).size(), pad_count(size));
  }
}

TEST(Packet, ReservedBitsOfTheSenderDoNotMatter) {
  test::Random random(23);
  const Packet sent = test::random_packet(random, Opcode::kUdSendOnlyImm, {});
  Bytes bytes = test::whole(sent, false);
  bytes[4] |= std::byte{0x3f};
  bytes[8] |= std::byte{0x7f};
  bytes[16] = std::byte{0xff};
  Packet received;
  ASSERT_EQ(decode_packet(bytes, false, received), Drop::kNone);
  EXPECT_TRUE(test::same(sent, received));
}

TEST(Packet, RandomBytesNeverDecodeToWhatDoesNotEncodeBack) {
  constexpr std::uint64_t kSeed = 29;
  test::Random random(kSeed);
  int good = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes bytes = test::random_bytes(random, 4 * (random() % 24));
    if (bytes.size() > 1) bytes[1] &= std::byte{0xf0};
    const bool has_icrc = (random() & 1) != 0;
    Packet packet;
    if (decode_packet(bytes, has_icrc, packet) != Drop::kNone) continue;
    ++good;
    const Bytes again = test::whole(packet, has_icrc);
    ASSERT_EQ(again.size(), bytes.size()) << "seed " << kSeed << " round " << round;
    Packet twice;
    ASSERT_EQ(decode_packet(again, has_icrc, twice), Drop::kNone) << "seed " << kSeed << " round " << round;
    ASSERT_TRUE(test::same(packet, twice)) << "seed " << kSeed << " round " << round;
  }
  EXPECT_GT(good, 1000);
}

}  // namespace
}  // namespace verbena::wire
