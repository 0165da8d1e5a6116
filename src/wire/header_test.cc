#include <algorithm>

#include <gtest/gtest.h>

#include "wire/aeth.h"
#include "wire/atomic_ack_eth.h"
#include "wire/atomic_eth.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/ieth.h"
#include "wire/imm_dt.h"
#include "wire/reth.h"
#include "wire/selective_eth.h"
#include "wire/test_packets.h"
#include "wire/xrceth.h"

namespace verbena::wire {
namespace {

// Each header: a value, its bytes, and a mask of the bits that are not reserved.
template <class T>
struct Golden;

template <>
struct Golden<Bth> {
  static Bth value() {
    return {Opcode::kUdSendOnly, true, true, 3, 0, Pkey(0x8001), true, true, Qpn(0x123456), true, Psn(0xabcdef)};
  }
  static constexpr const char* bytes = "64 f0 8001 c0 123456 80 abcdef";
  static constexpr const char* used = "ff ff ffff c0 ffffff 80 ffffff";
};
template <>
struct Golden<Deth> {
  static Deth value() { return {Qkey(0x11223344), Qpn(0x556677)}; }
  static constexpr const char* bytes = "11223344 00 556677";
  static constexpr const char* used = "ffffffff 00 ffffff";
};
template <>
struct Golden<Reth> {
  static Reth value() { return {0x0102030405060708, MemoryKey(0x090a0b0c), 0x0d0e0f10}; }
  static constexpr const char* bytes = "0102030405060708 090a0b0c 0d0e0f10";
  static constexpr const char* used = "ffffffffffffffff ffffffff ffffffff";
};
template <>
struct Golden<AtomicEth> {
  static AtomicEth value() {
    return {0x0102030405060708, MemoryKey(0x090a0b0c), 0x1112131415161718, 0x2122232425262728};
  }
  static constexpr const char* bytes = "0102030405060708 090a0b0c 1112131415161718 2122232425262728";
  static constexpr const char* used = "ffffffffffffffff ffffffff ffffffffffffffff ffffffffffffffff";
};
template <>
struct Golden<Aeth> {
  static Aeth value() { return {Syndrome(0x63), 0x010203}; }
  static constexpr const char* bytes = "63 010203";
  static constexpr const char* used = "ff ffffff";
};
template <>
struct Golden<AtomicAckEth> {
  static AtomicAckEth value() { return {0xfedcba9876543210}; }
  static constexpr const char* bytes = "fedcba9876543210";
  static constexpr const char* used = "ffffffffffffffff";
};
template <>
struct Golden<Ieth> {
  static Ieth value() { return {MemoryKey(0xcafe0102)}; }
  static constexpr const char* bytes = "cafe0102";
  static constexpr const char* used = "ffffffff";
};
template <>
struct Golden<Feth> {
  static Feth value() { return {0x2, 0x1}; }
  static constexpr const char* bytes = "00000012";
  static constexpr const char* used = "0000003f";
};
template <>
struct Golden<Xrceth> {
  static Xrceth value() { return {0x010203}; }
  static constexpr const char* bytes = "00 010203";
  static constexpr const char* used = "00 ffffff";
};
template <>
struct Golden<SelectiveEth> {
  static SelectiveEth value() {
    SelectiveEth header;
    for (const std::uint32_t index : {0U, 9U, 63U, 64U, 127U}) header.add(index);
    return header;
  }
  static constexpr const char* bytes = "8040000000000001 8000000000000001";
  static constexpr const char* used = "ffffffffffffffff ffffffffffffffff";
};
template <>
struct Golden<ImmDt> {
  static ImmDt value() {
    ImmDt header;
    const test::Bytes bytes_in_memory = test::bytes_of_hex(bytes);
    std::copy(bytes_in_memory.begin(), bytes_in_memory.end(), reinterpret_cast<std::byte*>(&header.network_order));
    return header;
  }
  static constexpr const char* bytes = "01020304";
  static constexpr const char* used = "ffffffff";
};

template <class T>
class HeaderTest : public testing::Test {};

using Headers = testing::Types<Bth, Deth, Reth, AtomicEth, Aeth, AtomicAckEth, ImmDt, Ieth, Feth, Xrceth, SelectiveEth>;
TYPED_TEST_SUITE(HeaderTest, Headers);

template <class T>
T decode(const test::Bytes& bytes) {
  return T::decode(std::span(bytes).template first<T::kSize>());
}

template <class T>
test::Bytes encode(const T& header) {
  test::Bytes out(T::kSize, std::byte{0xee});
  header.encode(std::span(out).template first<T::kSize>());
  return out;
}

TYPED_TEST(HeaderTest, StandsOnTheWireAsTheSpecificationDrawsIt) {
  const auto bytes = test::bytes_of_hex(Golden<TypeParam>::bytes);
  ASSERT_EQ(bytes.size(), TypeParam::kSize);
  EXPECT_EQ(encode(Golden<TypeParam>::value()), bytes);
  EXPECT_TRUE(decode<TypeParam>(bytes) == Golden<TypeParam>::value());
}

TYPED_TEST(HeaderTest, DefaultsEncodeAsZeroes) {
  test::Bytes expected(TypeParam::kSize);
  if constexpr (std::is_same_v<TypeParam, Bth>) expected[2] = expected[3] = std::byte{0xff};  // the default P_Key
  EXPECT_EQ(encode(TypeParam{}), expected);
}

TYPED_TEST(HeaderTest, RoundTripKeepsAllButReservedBits) {
  const auto used = test::bytes_of_hex(Golden<TypeParam>::used);
  constexpr std::uint64_t kSeed = 20240101;
  test::Random random(kSeed);
  for (int round = 0; round < 10'000; ++round) {
    test::Bytes bytes = test::random_bytes(random, TypeParam::kSize);
    const TypeParam header = decode<TypeParam>(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] &= used[i];
    ASSERT_EQ(encode(header), bytes) << "seed " << kSeed << " round " << round;
    ASSERT_TRUE(decode<TypeParam>(bytes) == header) << "seed " << kSeed << " round " << round;
  }
}

TEST(Header, FieldsWiderThanTheirPlaceAreCutAndDisturbNoNeighbour) {
  EXPECT_EQ(encode(Xrceth{0xff010203}), test::bytes_of_hex("00010203"));
  EXPECT_EQ(encode(Aeth{Syndrome(0x1f), 0xff010203}), test::bytes_of_hex("1f010203"));
  EXPECT_EQ(encode(Feth{0xff, 0xff}), test::bytes_of_hex("0000003f"));
  Bth bth;
  bth.pad_count = 0xff;
  bth.transport_version = 0xff;
  EXPECT_EQ(encode(bth), test::bytes_of_hex("00 3f ffff 00000000 00000000"));
}

}  // namespace
}  // namespace verbena::wire
