#include "wire/opcode.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace verbena::wire {
namespace {

struct Fact {
  std::string_view name;
  std::uint8_t code;
  std::uint8_t size;  // BTH and extension headers, added up by hand
};

// Typed from the specification's own table, apart from the one that the product is computed from.
constexpr Fact kFacts[] = {
    {"RC_SEND_FIRST", 0x00, 12},
    {"RC_SEND_MIDDLE", 0x01, 12},
    {"RC_SEND_LAST", 0x02, 12},
    {"RC_SEND_LAST_IMM", 0x03, 16},
    {"RC_SEND_ONLY", 0x04, 12},
    {"RC_SEND_ONLY_IMM", 0x05, 16},
    {"RC_WRITE_FIRST", 0x06, 28},
    {"RC_WRITE_MIDDLE", 0x07, 12},
    {"RC_WRITE_LAST", 0x08, 12},
    {"RC_WRITE_LAST_IMM", 0x09, 16},
    {"RC_WRITE_ONLY", 0x0a, 28},
    {"RC_WRITE_ONLY_IMM", 0x0b, 32},
    {"RC_READ_REQUEST", 0x0c, 28},
    {"RC_READ_RESPONSE_FIRST", 0x0d, 16},
    {"RC_READ_RESPONSE_MIDDLE", 0x0e, 12},
    {"RC_READ_RESPONSE_LAST", 0x0f, 16},
    {"RC_READ_RESPONSE_ONLY", 0x10, 16},
    {"RC_ACKNOWLEDGE", 0x11, 16},
    {"RC_ATOMIC_ACKNOWLEDGE", 0x12, 24},
    {"RC_COMPARE_SWAP", 0x13, 40},
    {"RC_FETCH_ADD", 0x14, 40},
    {"RC_SEND_LAST_INVALIDATE", 0x16, 16},
    {"RC_SEND_ONLY_INVALIDATE", 0x17, 16},
    {"RC_FLUSH", 0x1c, 32},
    {"RC_ATOMIC_WRITE", 0x1d, 28},
    {"UC_SEND_FIRST", 0x20, 12},
    {"UC_SEND_MIDDLE", 0x21, 12},
    {"UC_SEND_LAST", 0x22, 12},
    {"UC_SEND_LAST_IMM", 0x23, 16},
    {"UC_SEND_ONLY", 0x24, 12},
    {"UC_SEND_ONLY_IMM", 0x25, 16},
    {"UC_WRITE_FIRST", 0x26, 28},
    {"UC_WRITE_MIDDLE", 0x27, 12},
    {"UC_WRITE_LAST", 0x28, 12},
    {"UC_WRITE_LAST_IMM", 0x29, 16},
    {"UC_WRITE_ONLY", 0x2a, 28},
    {"UC_WRITE_ONLY_IMM", 0x2b, 32},
    {"UD_SEND_ONLY", 0x64, 20},
    {"UD_SEND_ONLY_IMM", 0x65, 24},
    {"CNP", 0x81, 28},
    {"XRC_SEND_FIRST", 0xa0, 16},
    {"XRC_SEND_MIDDLE", 0xa1, 16},
    {"XRC_SEND_LAST", 0xa2, 16},
    {"XRC_SEND_LAST_IMM", 0xa3, 20},
    {"XRC_SEND_ONLY", 0xa4, 16},
    {"XRC_SEND_ONLY_IMM", 0xa5, 20},
    {"XRC_WRITE_FIRST", 0xa6, 32},
    {"XRC_WRITE_MIDDLE", 0xa7, 16},
    {"XRC_WRITE_LAST", 0xa8, 16},
    {"XRC_WRITE_LAST_IMM", 0xa9, 20},
    {"XRC_WRITE_ONLY", 0xaa, 32},
    {"XRC_WRITE_ONLY_IMM", 0xab, 36},
    {"XRC_READ_REQUEST", 0xac, 32},
    {"XRC_READ_RESPONSE_FIRST", 0xad, 16},
    {"XRC_READ_RESPONSE_MIDDLE", 0xae, 12},
    {"XRC_READ_RESPONSE_LAST", 0xaf, 16},
    {"XRC_READ_RESPONSE_ONLY", 0xb0, 16},
    {"XRC_ACKNOWLEDGE", 0xb1, 16},
    {"XRC_ATOMIC_ACKNOWLEDGE", 0xb2, 24},
    {"XRC_COMPARE_SWAP", 0xb3, 44},
    {"XRC_FETCH_ADD", 0xb4, 44},
    {"XRC_SEND_LAST_INVALIDATE", 0xb6, 20},
    {"XRC_SEND_ONLY_INVALIDATE", 0xb7, 20},
    {"XRC_FLUSH", 0xbc, 36},
    {"XRC_ATOMIC_WRITE", 0xbd, 32},
    {"SELECTIVE_ACKNOWLEDGE", 0xd1, 32},  // a code for manufacturers
};

TEST(Opcode, TableHoldsWhatTheSpecificationDefinesAndNothingElse) {
  std::map<int, Fact> facts;
  for (const Fact& fact : kFacts) facts[fact.code] = fact;
  ASSERT_EQ(facts.size(), std::size(kFacts));
  for (int value = 0; value < 256; ++value) {
    const OpcodeRow& row = row_of(static_cast<Opcode>(value));
    EXPECT_EQ(static_cast<int>(row.opcode), value);
    const auto fact = facts.find(value);
    if (fact == facts.end()) {
      EXPECT_FALSE(row.is_known()) << value;
      EXPECT_EQ(row.name, "UNKNOWN");
      continue;
    }
    EXPECT_TRUE(row.is_known()) << fact->second.name;
    EXPECT_EQ(row.name, fact->second.name);
    EXPECT_EQ(row.header_size, fact->second.size) << row.name;
    EXPECT_EQ(static_cast<int>(row.transport), value & 0xe0) << row.name;
  }
}

TEST(Opcode, EnumeratorsStandAtTheirCodes) {
  EXPECT_EQ(row_of(Opcode::kRcFetchAdd).name, "RC_FETCH_ADD");
  EXPECT_EQ(row_of(Opcode::kRcAtomicWrite).name, "RC_ATOMIC_WRITE");
  EXPECT_EQ(row_of(Opcode::kUcWriteOnlyImm).name, "UC_WRITE_ONLY_IMM");
  EXPECT_EQ(row_of(Opcode::kUdSendOnlyImm).name, "UD_SEND_ONLY_IMM");
  EXPECT_EQ(row_of(Opcode::kCnp).name, "CNP");
  EXPECT_EQ(row_of(Opcode::kXrcFetchAdd).name, "XRC_FETCH_ADD");
  EXPECT_EQ(row_of(Opcode::kXrcSendOnlyInvalidate).name, "XRC_SEND_ONLY_INVALIDATE");
  EXPECT_EQ(row_of(Opcode::kXrcAtomicWrite).name, "XRC_ATOMIC_WRITE");
  EXPECT_EQ(row_of(Opcode::kSelectiveAcknowledge).name, "SELECTIVE_ACKNOWLEDGE");
}

TEST(Opcode, NameTellsImmediateInvalidateAndPlace) {
  for (const Fact& fact : kFacts) {
    const OpcodeRow& row = row_of(static_cast<Opcode>(fact.code));
    const std::string name(row.name);
    const auto says = [&](std::string_view word) { return name.find(word) != std::string::npos; };
    EXPECT_EQ(row.carries_immediate(), says("_IMM")) << name;
    EXPECT_EQ(row.carries_invalidate(), says("_INVALIDATE")) << name;
    EXPECT_EQ(row.place == Place::kFirst, says("_FIRST")) << name;
    EXPECT_EQ(row.place == Place::kMiddle, says("_MIDDLE")) << name;
    EXPECT_EQ(row.place == Place::kLast, says("_LAST")) << name;
    EXPECT_EQ(row.starts_message(), row.place == Place::kFirst || row.place == Place::kOnly) << name;
    EXPECT_EQ(row.ends_message(), row.place == Place::kLast || row.place == Place::kOnly) << name;
    EXPECT_EQ(row.has_payload, says("_SEND") || says("_WRITE") || says("RESPONSE")) << name;
    EXPECT_EQ(row.is_response(), says("RESPONSE") || says("ACKNOWLEDGE")) << name;
    EXPECT_EQ(row.is_request(), !row.is_response() && name != "CNP") << name;
  }
}

TEST(Opcode, XrcRequestsNameTheirSharedReceiveQueueAndResponsesDoNot) {
  for (const Fact& fact : kFacts) {
    const OpcodeRow& row = row_of(static_cast<Opcode>(fact.code));
    EXPECT_EQ(row.headers.has(Header::kXrceth), row.transport == Transport::kXrc && row.is_request()) << row.name;
    EXPECT_EQ(row.headers.has(Header::kDeth), row.transport == Transport::kUd) << row.name;
  }
}

}  // namespace
}  // namespace verbena::wire
