#include "wire/icrc.h"

#include <algorithm>
#include <initializer_list>

#include <gtest/gtest.h>

#include "base/byte_order.h"
#include "wire/network_header.h"
#include "wire/test_packets.h"

namespace verbena::wire {
namespace {

using test::Bytes;
using test::bytes_of_hex;

// CRC-32 a bit at a time, and the masks as annex A17 lists them: nothing shared with the product.
std::uint32_t icrc_by_the_book(Bytes header, Bytes covered) {
  const bool ipv4 = (std::to_integer<unsigned>(header[0]) >> 4) == 4;
  const auto mask = [](Bytes& bytes, std::size_t at, unsigned bits = 0xff) {
    if (at < bytes.size()) bytes[at] |= static_cast<std::byte>(bits);
  };
  if (ipv4) {
    for (const std::size_t at : {1U, 8U, 10U, 11U, 26U, 27U}) mask(header, at);
  } else {
    mask(header, 0, 0x0f);
    for (const std::size_t at : {1U, 2U, 3U, 7U, 46U, 47U}) mask(header, at);
  }
  mask(covered, 4);
  Bytes all(8, std::byte{0xff});
  all.insert(all.end(), header.begin(), header.end());
  all.insert(all.end(), covered.begin(), covered.end());
  std::uint32_t crc = 0xffffffff;
  for (const std::byte byte : all) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

Bytes header_of(const Envelope& envelope, std::size_t udp_payload_size) {
  const NetworkHeader header(envelope, udp_payload_size);
  return {header.bytes().begin(), header.bytes().end()};
}

Bytes icrc_bytes(std::uint32_t icrc) {
  Bytes bytes(kIcrcSize);
  store_icrc(icrc, std::span(bytes).first<kIcrcSize>());
  return bytes;
}

void set_id(Bytes& ipv4_header, std::uint16_t id, bool dont_fragment) {
  store_be16(ipv4_header.data() + 4, id);
  store_be16(ipv4_header.data() + 6, dont_fragment ? 0x4000 : 0);
}

TEST(Icrc, MatchesTheCnpOfAConnectX4) {
  const Bytes header = bytes_of_hex("45c2003c718c4000401191610a0011010a001201 000012b700280000");
  const Bytes covered = bytes_of_hex("8100ffff4000011800000000 00000000000000000000000000000000");
  EXPECT_EQ(icrc_bytes(compute_icrc(header, covered)), bytes_of_hex("82fd002a"));
}

TEST(Icrc, MatchesTheUcFrameOfScapy) {
  const Bytes header = bytes_of_hex("45010040047840004011b4d5c0a80007c0a80007 c00012b7002caca2");
  const Bytes covered = bytes_of_hex("2460ffff000000d300cf1710 4630818be28935d90e9a95505401be885e500000");
  EXPECT_EQ(icrc_bytes(compute_icrc(header, covered)), bytes_of_hex("78f353f3"));
}

TEST(Icrc, AgreesWithTheDefinitionForEverySize) {
  constexpr std::uint64_t kSeed = 43;
  test::Random random(kSeed);
  for (std::size_t size = 0; size < 700; ++size) {
    const Bytes covered = test::random_bytes(random, size);
    const Bytes header = header_of(test::random_envelope(random, (size & 1) != 0), size + kIcrcSize);
    ASSERT_EQ(compute_icrc(header, covered), icrc_by_the_book(header, covered)) << "seed " << kSeed << " size " << size;
  }
}

TEST(Icrc, DoesNotDependOnHowTheBytesAreScattered) {
  constexpr std::uint64_t kSeed = 47;
  test::Random random(kSeed);
  for (int round = 0; round < 5'000; ++round) {
    const Bytes covered = test::random_bytes(random, random() % 5000);
    const Bytes header = header_of(test::random_envelope(random, (round & 1) != 0), covered.size() + kIcrcSize);
    std::vector<std::span<const std::byte>> parts;
    for (std::size_t at = 0; at < covered.size();) {
      const std::size_t longest = random() % 3 == 0 ? covered.size() : 16;
      const std::size_t size = std::min<std::size_t>(random() % (longest + 1), covered.size() - at);
      parts.push_back(std::span(covered).subspan(at, size));
      at += size;
    }
    ASSERT_EQ(compute_icrc(header, parts), compute_icrc(header, covered)) << "seed " << kSeed << " round " << round;
  }
}

TEST(Icrc, OfNothingButAHeaderIsDefined) {
  const Bytes header = header_of(Envelope{}, 0);
  EXPECT_EQ(compute_icrc(header, std::span<const std::span<const std::byte>>{}), icrc_by_the_book(header, {}));
  EXPECT_EQ(compute_icrc(header, std::span<const std::byte>{}), icrc_by_the_book(header, {}));
}

TEST(Icrc, CoversAllButWhatRoutersMayWrite) {
  test::Random random(53);
  for (const bool ipv4 : {false, true}) {
    const Bytes covered = test::random_bytes(random, 40);
    const Bytes header = header_of(test::random_envelope(random, ipv4), covered.size() + kIcrcSize);
    const std::uint32_t icrc = compute_icrc(header, covered);
    const Bytes blind = ipv4 ? bytes_of_hex("00ff0000 00000000 ff00ffff 00000000 00000000 00000000 0000ffff")
                             : bytes_of_hex(
                                   "0fffffff 000000ff 00000000000000000000000000000000"
                                   "00000000000000000000000000000000 00000000 0000ffff");
    ASSERT_EQ(blind.size(), header.size());
    for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
      Bytes changed = header;
      changed[bit / 8] ^= std::byte{1} << (bit % 8);
      const bool is_masked = (blind[bit / 8] & (std::byte{1} << (bit % 8))) != std::byte{0};
      EXPECT_EQ(compute_icrc(changed, covered) == icrc, is_masked) << "header bit " << bit;
    }
    for (std::size_t bit = 0; bit < covered.size() * 8; ++bit) {
      Bytes changed = covered;
      changed[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_EQ(compute_icrc(header, changed) == icrc, bit / 8 == 4) << "BTH bit " << bit;
    }
  }
}

TEST(Icrc, VerifiesExactlyWhatItMadeAndNothingElse) {
  constexpr std::uint64_t kSeed = 59;
  test::Random random(kSeed);
  for (int round = 0; round < 400; ++round) {
    const Bytes payload = test::random_bytes(random, random() % 120);
    const Packet packet = test::random_packet(random, Opcode::kUdSendOnlyImm, payload);
    const std::size_t size = udp_payload_size(packet.bth.opcode, payload.size(), true);
    const Bytes header = header_of(test::random_envelope(random, (round & 1) != 0), size);
    Bytes bytes = test::whole_with_icrc(packet, header);
    ASSERT_EQ(verify_icrc(header, bytes).strength, IcrcStrength::kExact);
    ASSERT_EQ(verify_icrc_of_unknown_id(header, bytes).strength, IcrcStrength::kExact);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_EQ(verify_icrc(header, bytes).is_good(), bit / 8 == 4) << "seed " << kSeed << " round " << round;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST(Icrc, RefusesWhatIsTooShortToHoldOne) {
  const Bytes bytes(Bth::kSize + kIcrcSize - 1);
  const Bytes header = header_of({Gid::from_ipv4(1), Gid::from_ipv4(2)}, bytes.size());
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_FALSE(verify_icrc(header, std::span(bytes).first(size)).is_good());
    EXPECT_FALSE(verify_icrc_of_unknown_id(header, std::span(bytes).first(size)).is_good());
  }
}

TEST(IcrcOfUnknownId, FindsTheIdAndTheFlagOfTheSender) {
  constexpr std::uint64_t kSeed = 61;
  test::Random random(kSeed);
  for (int round = 0; round < 20'000; ++round) {
    const Bytes payload = test::random_bytes(random, round % 16 == 0 ? random() % 9000 : random() % 200);
    const Packet packet = test::random_packet(random, Opcode::kUdSendOnly, payload);
    const std::size_t size = udp_payload_size(packet.bth.opcode, payload.size(), true);
    const Bytes ours = header_of(test::random_envelope(random, true), size);
    Bytes theirs = ours;
    const auto id = static_cast<std::uint16_t>(random());
    const bool dont_fragment = (random() & 1) != 0;
    set_id(theirs, id, dont_fragment);
    const Bytes bytes = test::whole_with_icrc(packet, theirs);
    const IcrcCheck check = verify_icrc_of_unknown_id(ours, bytes);
    const bool is_ours = id == 0 && dont_fragment;
    ASSERT_EQ(check.strength, is_ours ? IcrcStrength::kExact : IcrcStrength::kResidual) << "seed " << kSeed;
    ASSERT_EQ(check.ipv4_id, id) << "seed " << kSeed << " round " << round;
    ASSERT_EQ(check.dont_fragment, dont_fragment) << "seed " << kSeed << " round " << round;
  }
}

TEST(IcrcOfUnknownId, FindsEveryIdOfOnePacket) {
  const Bytes payload = bytes_of_hex("0102030405060708");
  const Packet packet{.bth = {.opcode = Opcode::kUdSendOnly}, .payload = payload};
  const Bytes ours = header_of({Gid::from_ipv4(0x0a090001), Gid::from_ipv4(0x0a090002)}, 32);
  for (std::uint32_t id = 0; id < 0x10000; ++id) {
    Bytes theirs = ours;
    set_id(theirs, static_cast<std::uint16_t>(id), true);
    const IcrcCheck check = verify_icrc_of_unknown_id(ours, test::whole_with_icrc(packet, theirs));
    ASSERT_TRUE(check.is_good()) << id;
    ASSERT_EQ(check.ipv4_id, id);
    ASSERT_TRUE(check.dont_fragment);
  }
}

TEST(IcrcOfUnknownId, SolvesTheLargestDatagram) {
  test::Random random(67);
  const Bytes payload = test::random_bytes(random, 65'000);
  const Packet packet = test::random_packet(random, Opcode::kRcSendOnly, payload);
  const Bytes ours =
      header_of(test::random_envelope(random, true), udp_payload_size(packet.bth.opcode, payload.size(), true));
  Bytes theirs = ours;
  set_id(theirs, 0x8001, true);
  EXPECT_EQ(verify_icrc_of_unknown_id(ours, test::whole_with_icrc(packet, theirs)).ipv4_id, 0x8001);
}

TEST(IcrcOfUnknownId, DoesNotTakeFragmentFlagsForAnId) {
  const Packet packet{.bth = {.opcode = Opcode::kUdSendOnly}};
  const Bytes ours = header_of({Gid::from_ipv4(1), Gid::from_ipv4(2)}, 24);
  for (const std::uint16_t flags : std::initializer_list<std::uint16_t>{0x2000, 0x8000, 0x0001, 0x1fff}) {
    Bytes theirs = ours;
    store_be16(theirs.data() + 6, flags);
    EXPECT_FALSE(verify_icrc_of_unknown_id(ours, test::whole_with_icrc(packet, theirs)).is_good()) << flags;
  }
}

// 15 of the 32 bits are left as a check, so that one damaged packet in 32768 passes.
TEST(IcrcOfUnknownId, LetsPassAsFewDamagedPacketsAsFifteenBitsAllow) {
  constexpr std::uint64_t kSeed = 71;
  constexpr int kRounds = 400'000;
  test::Random random(kSeed);
  const Bytes ours = header_of({Gid::from_ipv4(1), Gid::from_ipv4(2)}, 60);
  int passed = 0;
  for (int round = 0; round < kRounds; ++round) {
    passed += verify_icrc_of_unknown_id(ours, test::random_bytes(random, 60)).is_good() ? 1 : 0;
  }
  EXPECT_GT(passed, 0) << "seed " << kSeed;
  EXPECT_LT(passed, 2 * kRounds / 32768) << "seed " << kSeed;
}

TEST(IcrcOfUnknownId, OfIpv6IsExactOrNothing) {
  const Packet packet{.bth = {.opcode = Opcode::kUdSendOnly}};
  const Bytes header = header_of({*parse_gid("fd00::1"), *parse_gid("fd00::2")}, 24);
  Bytes bytes = test::whole_with_icrc(packet, header);
  EXPECT_EQ(verify_icrc_of_unknown_id(header, bytes).strength, IcrcStrength::kExact);
  bytes[13] ^= std::byte{1};
  EXPECT_FALSE(verify_icrc_of_unknown_id(header, bytes).is_good());
}

}  // namespace
}  // namespace verbena::wire
