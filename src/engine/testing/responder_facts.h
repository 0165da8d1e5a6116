// What the tests of a responder have in common: PSNs counted from the first that it expects, and what it answers.
#pragma once

#include <cstdint>
#include <span>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"

namespace verbena::engine::testing::responder {

inline constexpr std::uint32_t kMtu = ConnectionBench::kMtu;
inline constexpr std::uint8_t kAck = 0x1f;
inline constexpr std::uint8_t kSequenceNak = 0x60;
inline constexpr std::uint8_t kInvalidNak = 0x61;
inline constexpr std::uint8_t kAccessNak = 0x62;
inline constexpr std::uint8_t kOperationalNak = 0x63;
inline constexpr std::uint8_t kRnrNak = 0x20 | 12;

inline std::uint32_t psn(std::uint32_t count) {
  return (ConnectionBench::kReceivePsn + count) & Psn::kMask;
}

inline void expect_answer(ConnectionBench& bench, std::uint8_t syndrome, std::uint32_t of) {
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].opcode(), wire::Opcode::kRcAcknowledge);
  const bool is_ack = (answers[0].syndrome() & 0x60) == 0;
  EXPECT_EQ(is_ack ? kAck : answers[0].syndrome(), syndrome);
  EXPECT_EQ(answers[0].psn(), of);
}

inline wire::Packet send(ConnectionBench& bench, wire::Opcode opcode, std::uint32_t at,
                         std::span<const std::byte> payload) {
  wire::Packet packet = bench.incoming(opcode, at);
  packet.payload = payload;
  return packet;
}

inline wire::Packet fetch_add(ConnectionBench& bench, std::uint32_t at, std::uint64_t add, std::size_t offset = 0) {
  wire::Packet packet = bench.incoming(wire::Opcode::kRcFetchAdd, at);
  packet.atomic_eth = {bench.granted_address() + offset, bench.rkey(), add, 0};
  return packet;
}

inline wire::Packet with_key(wire::Packet packet, std::uint32_t key) {
  packet.reth.rkey = MemoryKey(key);
  return packet;
}

}  // namespace verbena::engine::testing::responder
