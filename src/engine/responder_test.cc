#include "engine/responder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"
#include "wire/credit.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using wire::Opcode;

constexpr std::uint32_t kMtu = ConnectionBench::kMtu;
constexpr std::uint8_t kAck = 0x1f;
constexpr std::uint8_t kSequenceNak = 0x60;
constexpr std::uint8_t kInvalidNak = 0x61;
constexpr std::uint8_t kAccessNak = 0x62;
constexpr std::uint8_t kOperationalNak = 0x63;
constexpr std::uint8_t kRnrNak = 0x20 | 12;

std::uint32_t psn(std::uint32_t count) {
  return (ConnectionBench::kReceivePsn + count) & Psn::kMask;
}

void expect_answer(ConnectionBench& bench, std::uint8_t syndrome, std::uint32_t of) {
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kRcAcknowledge);
  const bool is_ack = (answers[0].syndrome() & 0x60) == 0;
  EXPECT_EQ(is_ack ? kAck : answers[0].syndrome(), syndrome);
  EXPECT_EQ(answers[0].psn(), of);
}

wire::Packet send(ConnectionBench& bench, Opcode opcode, std::uint32_t at, std::span<const std::byte> payload) {
  wire::Packet packet = bench.incoming(opcode, at);
  packet.payload = payload;
  return packet;
}

TEST(Responder, PutsAMessageTogetherAndAcknowledgesItOnce) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(9, 1000);
  const auto content = pattern(2 * kMtu + 4);
  const std::span<const std::byte> all(content);
  wire::Packet first = send(bench, Opcode::kRcSendFirst, psn(0), all.first(kMtu));
  first.bth.ack_request = false;
  EXPECT_EQ(bench.receive(first), Drop::kNone);
  EXPECT_TRUE(bench.responses().empty()) << "nobody asked";
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendMiddle, psn(1), all.subspan(kMtu, kMtu))), Drop::kNone);
  wire::Packet last = send(bench, Opcode::kRcSendLastImm, psn(2), all.subspan(2 * kMtu));
  last.imm_dt.network_order = 0x12345678;
  last.bth.solicited = true;
  EXPECT_EQ(bench.receive(last), Drop::kNone);
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 9U);
  EXPECT_EQ(completion->status, WcStatus::kSuccess);
  EXPECT_EQ(completion->opcode, WcOpcode::kReceive);
  EXPECT_EQ(completion->byte_length, 2 * kMtu + 4);
  EXPECT_EQ(completion->immediate, 0x12345678U);
  EXPECT_EQ(completion->flags & kWcWithImmediate, kWcWithImmediate);
  EXPECT_TRUE(completion->solicited);
  EXPECT_EQ(completion->source_qp, ConnectionBench::kPeerQpn);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), bench.host().bytes().begin() + 0x4000));
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U) << "one takes in the other while both wait";
  EXPECT_EQ(answers[0].psn(), psn(2));
  EXPECT_EQ(answers[0].packet.aeth.msn, 1U);
}

TEST(Responder, SaysOnceThatAPacketIsMissing) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 64);
  bench.post_receive(2, 64);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), {})), Drop::kOutOfSequence);
  expect_answer(bench, kSequenceNak, psn(0));
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(2), {})), Drop::kOutOfSequence);
  EXPECT_TRUE(bench.responses().empty());
  EXPECT_FALSE(bench.received());
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {})), Drop::kNone);
  expect_answer(bench, kAck, psn(0));
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(5), {})), Drop::kOutOfSequence);
  expect_answer(bench, kSequenceNak, psn(1));
}

TEST(Responder, AcknowledgesACopyAndDoesNothingElse) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 64);
  bench.post_receive(2, 64);
  const auto content = pattern(16);
  bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content));
  wire::Packet write = bench.incoming_write(Opcode::kRcWriteOnly, psn(1), 16);
  write.payload = content;
  bench.receive(write);
  bench.responses();
  EXPECT_TRUE(bench.received());
  bench.granted()[0] = std::byte{0xee};
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kNone);
  EXPECT_EQ(bench.receive(write), Drop::kNone);
  expect_answer(bench, kAck, psn(1));  // up to the latest
  EXPECT_FALSE(bench.received());
  EXPECT_EQ(bench.granted()[0], std::byte{0xee}) << "a write is not carried out twice";
  EXPECT_EQ(bench.events().count(TransportEvent::kDuplicateRequest), 2);
}

TEST(Responder, WithoutReceiveItAsksForTime) {
  ConnectionBench bench;
  bench.bring_up();
  const auto content = pattern(8);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kNoReceiveRequest);
  expect_answer(bench, kRnrNak, psn(0));
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), content)), Drop::kOutOfSequence);
  EXPECT_TRUE(bench.responses().empty()) << "silent until the one asked for comes";
  bench.post_receive(1, 64);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kNone);
  expect_answer(bench, kAck, psn(0));
  EXPECT_TRUE(bench.received());
}

TEST(Responder, AWriteWithImmediateWithoutReceiveIsNotCarriedOutYet) {
  ConnectionBench bench;
  bench.bring_up();
  const auto content = pattern(32);
  wire::Packet write = bench.incoming_write(Opcode::kRcWriteOnlyImm, psn(0), 32);
  write.payload = content;
  write.imm_dt.network_order = 5;
  EXPECT_EQ(bench.receive(write), Drop::kNoReceiveRequest);
  expect_answer(bench, kRnrNak, psn(0));
  EXPECT_EQ(bench.granted()[0], std::byte{0});
  bench.post_receive(4, 0);
  EXPECT_EQ(bench.receive(write), Drop::kNone);
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->opcode, WcOpcode::kReceiveRdmaWithImmediate);
  EXPECT_EQ(completion->byte_length, 32U);
  EXPECT_EQ(completion->immediate, 5U);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), bench.granted().begin()));
}

TEST(Responder, TheLastPacketOfAWriteWithImmediateWaitsForAReceiveToo) {
  ConnectionBench bench;
  bench.bring_up();
  const auto content = pattern(kMtu + 8);
  wire::Packet first = bench.incoming_write(Opcode::kRcWriteFirst, psn(0), kMtu + 8);
  first.payload = std::span(content).first(kMtu);
  EXPECT_EQ(bench.receive(first), Drop::kNone);
  bench.responses();
  wire::Packet last = bench.incoming(Opcode::kRcWriteLastImm, psn(1));
  last.payload = std::span(content).subspan(kMtu);
  EXPECT_EQ(bench.receive(last), Drop::kNoReceiveRequest);
  expect_answer(bench, kRnrNak, psn(1));
  bench.post_receive(4, 0);
  EXPECT_EQ(bench.receive(last), Drop::kNone);
  EXPECT_TRUE(bench.received());
  EXPECT_TRUE(std::equal(content.begin(), content.end(), bench.granted().begin()));
}

// --- reads and atomics

TEST(Responder, AnswersAReadInPacketsOfTheMtu) {
  ConnectionBench bench;
  bench.bring_up();
  const auto content = pattern(2 * kMtu + 4);
  std::copy(content.begin(), content.end(), bench.granted().begin() + 8);
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 2 * kMtu + 4, 8)), Drop::kNone);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kRcReadResponseFirst);
  EXPECT_EQ(answers[1].opcode(), Opcode::kRcReadResponseMiddle);
  EXPECT_EQ(answers[2].opcode(), Opcode::kRcReadResponseLast);
  std::vector<std::byte> all;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers[i].psn(), psn(i));
    all.insert(all.end(), answers[i].payload.begin(), answers[i].payload.end());
  }
  EXPECT_EQ(all, content);
  EXPECT_EQ(answers[2].packet.aeth.msn, 1U);
  wire::Packet next = bench.incoming_write(Opcode::kRcReadRequest, psn(3), 0);
  EXPECT_EQ(bench.receive(next), Drop::kNone) << "the read took three PSNs";
  const auto empty = bench.responses();
  ASSERT_EQ(empty.size(), 1U);
  EXPECT_EQ(empty[0].opcode(), Opcode::kRcReadResponseOnly);
}

TEST(Responder, ReadsAgainWhatIsAskedAgainAlsoFromTheMiddle) {
  ConnectionBench bench;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 4 * kMtu));
  EXPECT_EQ(bench.responses().size(), 4U);
  bench.granted()[2 * kMtu] = std::byte{0x77};
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(2), 2 * kMtu, 2 * kMtu)), Drop::kNone);
  const auto again = bench.responses();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].opcode(), Opcode::kRcReadResponseFirst);
  EXPECT_EQ(again[0].psn(), psn(2));
  EXPECT_EQ(again[0].payload[0], std::byte{0x77});
  // Not what was asked the first time.
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(2), 2 * kMtu, 0)), Drop::kDuplicateRequest);
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(2), 3 * kMtu, 2 * kMtu)),
            Drop::kDuplicateRequest);
  EXPECT_TRUE(bench.responses().empty());
}

wire::Packet fetch_add(ConnectionBench& bench, std::uint32_t at, std::uint64_t add, std::size_t offset = 0) {
  wire::Packet packet = bench.incoming(Opcode::kRcFetchAdd, at);
  packet.atomic_eth = {bench.granted_address() + offset, bench.rkey(), add, 0};
  return packet;
}

std::uint64_t word_of(ConnectionBench& bench) {
  std::uint64_t value = 0;
  std::memcpy(&value, bench.granted().data(), sizeof value);
  return value;
}

TEST(Responder, AnAtomicIsAppliedOnceHoweverOftenItIsAsked) {
  ConnectionBench bench;
  bench.bring_up();
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(0), 5)), Drop::kNone);
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(1), 7)), Drop::kNone);
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(0), 5)), Drop::kNone);
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(1), 7)), Drop::kNone);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].packet.atomic_ack_eth.original, 0U);
  EXPECT_EQ(answers[1].packet.atomic_ack_eth.original, 5U);
  EXPECT_EQ(answers[2].packet.atomic_ack_eth.original, 0U);
  EXPECT_EQ(answers[3].packet.atomic_ack_eth.original, 5U);
  EXPECT_EQ(answers[2].psn(), psn(0));
  EXPECT_EQ(word_of(bench), 12U);
}

TEST(Responder, ComparesBeforeItSwaps) {
  ConnectionBench bench;
  bench.bring_up();
  wire::Packet packet = bench.incoming(Opcode::kRcCompareSwap, psn(0));
  packet.atomic_eth = {bench.granted_address(), bench.rkey(), 99, 1};
  bench.receive(packet);
  EXPECT_EQ(word_of(bench), 0U) << "it was 0, not 1";
  packet.bth.psn = Psn(psn(1));
  packet.atomic_eth.compare = 0;
  bench.receive(packet);
  EXPECT_EQ(word_of(bench), 99U);
}

TEST(Responder, RemembersAsManyAnswersAsWereAgreed) {
  ConnectionBench bench;  // 4
  bench.bring_up();
  for (std::uint32_t i = 0; i < 6; ++i) {
    bench.receive(fetch_add(bench, psn(i), 1));
    bench.responses();
  }
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(1), 1)), Drop::kDuplicateRequest) << "long answered";
  EXPECT_EQ(bench.receive(fetch_add(bench, psn(2), 1)), Drop::kNone);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].packet.atomic_ack_eth.original, 2U);
  EXPECT_EQ(word_of(bench), 6U);
}

TEST(Responder, ARepeatedRequestOfAnotherKindIsNotAnswered) {
  ConnectionBench bench;
  bench.bring_up();
  bench.receive(fetch_add(bench, psn(0), 1));
  bench.responses();
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 8)), Drop::kDuplicateRequest);
  EXPECT_TRUE(bench.responses().empty());
}

TEST(Responder, MoreReadsThanAgreedAreRefused) {
  ConnectionBench bench;  // 4
  bench.bring_up();
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(i), 8)), Drop::kNone);
  }
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(4), 8)), Drop::kInvalidRequest);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  EXPECT_EQ(bench.qp().poll_event(), QpEvent::kRequestError);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(answers[4].syndrome(), kInvalidNak);
  EXPECT_EQ(answers[4].psn(), psn(4));
}

TEST(Responder, WhereNoReadsWereAgreedTheFirstIsRefused) {
  ConnectionBench bench;
  bench.attributes.max_dest_rd_atomic = 0;
  bench.bring_up();
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 8)), Drop::kInvalidRequest);
}

// However often they are repeated while nothing can be sent, the next new one finds room.
TEST(Responder, RepeatedRequestsNeverCrowdOutNewOnes) {
  ConnectionBench bench;
  bench.attributes.max_dest_rd_atomic = 1;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 8));
  for (int i = 0; i < 50; ++i) {
    bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 8));
    bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), {}));  // RNR, again and again
  }
  Transmit packet;
  ASSERT_TRUE(bench.qp().poll_response(packet));
  bench.qp().on_responded(1);
  for (int i = 0; i < 50; ++i) bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 8));
  EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(1), 8)), Drop::kNone);
  EXPECT_EQ(bench.qp().state(), QpState::kReadyToSend);
  const auto answers = bench.responses();
  ASSERT_FALSE(answers.empty());
  EXPECT_LT(answers.size(), 10U);
  EXPECT_EQ(answers.back().psn(), psn(1));
  EXPECT_EQ(answers.back().opcode(), Opcode::kRcReadResponseOnly);
}

TEST(Responder, MoreReadsMayBeAgreedWhileTheSendQueueIsDrained) {
  ConnectionBench bench;
  bench.attributes.max_dest_rd_atomic = 1;
  bench.bring_up();
  bench.receive(fetch_add(bench, psn(0), 1));
  ASSERT_TRUE(bench.go(QpState::kSendQueueDrained));
  bench.attributes.max_dest_rd_atomic = 8;
  ASSERT_TRUE(bench.go(QpState::kSendQueueDrained, kAttrMaxDestRdAtomic));
  for (std::uint32_t i = 1; i < 8; ++i) EXPECT_EQ(bench.receive(fetch_add(bench, psn(i), 1)), Drop::kNone) << i;
  EXPECT_EQ(bench.responses().size(), 8U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(bench.receive(fetch_add(bench, psn(i), 1)), Drop::kNone) << i;
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 8U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(answers[i].packet.atomic_ack_eth.original, i);
}

TEST(Responder, AReadWhoseMemoryGoesWhileItIsAnsweredIsRefusedOnce) {
  ConnectionBench bench;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 4 * kMtu));
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(4), 0));
  std::array<Transmit, 3> batch;
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_response(packet));
  bench.qp().on_responded(2);
  bench.qp().rewind_responses();
  bench.host().memory().remove(bench.rkey());
  ASSERT_TRUE(bench.qp().poll_response(batch[0]));
  bench.qp().rewind_responses();
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].syndrome(), kAccessNak);
  EXPECT_EQ(answers[0].psn(), psn(2));
  EXPECT_EQ(answers[1].psn(), psn(4));
  EXPECT_FALSE(bench.qp().has_responses());
}

TEST(Responder, AnswersThatTheTransportDidNotTakeAreYieldedAgain) {
  ConnectionBench bench;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, psn(0), 3 * kMtu));
  bench.receive(fetch_add(bench, psn(3), 1));
  std::array<Transmit, 4> batch;
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_response(packet));
  EXPECT_FALSE(bench.qp().has_responses());
  bench.qp().on_responded(1);
  bench.qp().rewind_responses();
  const auto rest = bench.responses();
  ASSERT_EQ(rest.size(), 3U);
  EXPECT_EQ(rest[0].opcode(), Opcode::kRcReadResponseMiddle);
  EXPECT_EQ(rest[0].psn(), psn(1));
  EXPECT_EQ(rest[2].opcode(), Opcode::kRcAtomicAcknowledge);
}

// --- credits

TEST(Responder, TellsHowManyReceivesItHas) {
  ConnectionBench bench;
  bench.bring_up();
  for (std::uint64_t i = 1; i <= 6; ++i) bench.post_receive(i, 64);
  bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {}));
  auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(wire::credits_of(answers[0].packet.aeth.syndrome.code()), 4U)
      << "five: the code says no more than there are";
  bench.receive(bench.incoming_write(Opcode::kRcWriteOnly, psn(1), 0));
  for (std::uint64_t i = 7; i <= 13; ++i) bench.post_receive(i, 64);
  answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(wire::credits_of(answers[0].packet.aeth.syndrome.code()), 12U) << "counted when it leaves";
}

TEST(Responder, TellsNoNumberOfReceivesThatItShares) {
  testing::QueueSource shared(16, 4);
  ConnectionBench bench(QpType::kRc, 128, 64, &shared);
  bench.bring_up();
  const Sge sge = bench.host().sge(0, 64);
  ASSERT_EQ(shared.queue().post(1, {&sge, 1}), 0);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {})), Drop::kNone);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].syndrome(), wire::kNoCreditLimit);
}

// --- refusals

struct Refused {
  std::string name;
  std::function<std::vector<wire::Packet>(ConnectionBench&)> packets;  // the last one is refused
  Drop drop = Drop::kInvalidRequest;
  std::uint8_t syndrome = kInvalidNak;
  QpEvent event = QpEvent::kRequestError;
};

std::vector<wire::Packet> one(wire::Packet packet, std::size_t payload = 0) {
  static const auto kContent = pattern(2 * kMtu);
  packet.payload = std::span(kContent).first(payload);
  return {packet};
}
std::vector<wire::Packet> two(const std::vector<wire::Packet>& first, const std::vector<wire::Packet>& second) {
  return {first.front(), second.front()};
}
wire::Packet atomic(ConnectionBench& bench, std::uint64_t address, std::uint32_t key) {
  wire::Packet packet = bench.incoming(Opcode::kRcFetchAdd, psn(0));
  packet.atomic_eth = {address, MemoryKey(key), 1, 0};
  return packet;
}
wire::Packet with_key(wire::Packet packet, std::uint32_t key) {
  packet.reth.rkey = MemoryKey(key);
  return packet;
}
wire::Packet flush(ConnectionBench& bench, std::uint8_t placement) {
  wire::Packet packet = bench.incoming_write(Opcode::kRcFlush, psn(0), 8);
  packet.feth.placement = placement;
  return packet;
}

const std::vector<Refused>& refusals() {
  using Bench = ConnectionBench;
  constexpr std::uint32_t kSize = Bench::kGrantedSize;
  static const std::vector<Refused> kAll{
      {"MiddleWithoutFirst", [](Bench& b) { return one(b.incoming(Opcode::kRcSendMiddle, psn(0)), kMtu); }},
      {"LastWithoutFirst", [](Bench& b) { return one(b.incoming(Opcode::kRcWriteLast, psn(0)), 8); }},
      {"FirstInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming_write(Opcode::kRcWriteFirst, psn(1), 2 * kMtu), kMtu));
       }},
      {"AnotherKindInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming(Opcode::kRcSendLast, psn(1)), 8));
       }},
      {"AReadInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming_write(Opcode::kRcReadRequest, psn(1), 8)));
       }},
      {"FirstShorterThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu - 4); }},
      {"FirstLongerThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu + 4); }},
      {"OnlyLongerThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), kMtu + 4), kMtu + 4); }},
      {"EmptyLast",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), kMtu), kMtu),
                    one(b.incoming(Opcode::kRcWriteLast, psn(1))));
       }},
      {"AWriteShorterThanItSaid", [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 16), 12); }},
      {"AWriteLongerThanItSaid", [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), 12); }},
      {"AReadWithPayload", [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8), 8); }},
      {"AnAtomicThatIsMisaligned", [](Bench& b) { return one(atomic(b, b.granted_address() + 4, b.rkey().value())); }},
      {"AnAtomicWriteThatIsMisaligned",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 8, 4), 8); }},
      {"AnAtomicWriteOfFourBytes",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 4), 4); }},
      {"AFlushToNowhere", [](Bench& b) { return one(flush(b, 0)); }},
      {"AReadOfMoreThanAMessage",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 0x80000001)); }},
      {"AWriteWithAWrongKey",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), 0x1234), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadWithAWrongKey",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8), 0)); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AWriteBeyondTheEnd",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8, kSize - 4), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadBeforeTheBeginning",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8, std::size_t(0) - 8)); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadThatWrapsAround",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 0x7fffffff)); }, Drop::kRemoteAccess,
       kAccessNak, QpEvent::kAccessError},
      {"AnAtomicBeyondTheEnd", [](Bench& b) { return one(atomic(b, b.granted_address() + kSize, b.rkey().value())); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AWriteToLocalMemory",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), b.host().lkey()), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
  };
  return kAll;
}

class ResponderRefusalTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ResponderRefusalTest, IsTheEndOfTheConnection) {
  const Refused& refused = refusals()[GetParam()];
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 64);
  bench.post(SendOpcode::kSend, 16, 2, 0);
  const std::vector<std::byte> before(bench.host().bytes().begin(), bench.host().bytes().end());
  const auto packets = refused.packets(bench);
  if (packets.size() == 2) {
    EXPECT_EQ(bench.receive(packets[0]), Drop::kNone);
    bench.responses();
  }
  EXPECT_EQ(bench.receive(packets.back()), refused.drop);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  expect_answer(bench, refused.syndrome, packets.back().bth.psn.value());
  EXPECT_EQ(bench.qp().poll_event(), refused.event);
  const auto receive = bench.received();
  ASSERT_TRUE(receive);
  EXPECT_EQ(receive->status, WcStatus::kFlushError);
  const auto sent = bench.sent();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, WcStatus::kFlushError);
  if (packets.size() == 1) {
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bench.host().bytes().begin())) << "nothing was touched";
  }
  EXPECT_EQ(bench.receive(packets.back()), Drop::kBadQpState);
}

INSTANTIATE_TEST_SUITE_P(Requests, ResponderRefusalTest, ::testing::Range<std::size_t>(0, refusals().size()),
                         [](const auto& instance) { return refusals()[instance.param].name; });

TEST(Responder, EachRightIsNeededOnTheRegionAndOnTheQueuePair) {
  struct Case {
    AccessFlags right;
    std::function<wire::Packet(ConnectionBench&)> packet;
  };
  static const auto kWord = pattern(8);
  const std::vector<Case> cases{
      {kRemoteWrite,
       [](ConnectionBench& b) {
         auto packet = b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8);
         packet.payload = kWord;
         return packet;
       }},
      {kRemoteRead, [](ConnectionBench& b) { return b.incoming_write(Opcode::kRcReadRequest, psn(0), 8); }},
      {kRemoteAtomic, [](ConnectionBench& b) { return fetch_add(b, psn(0), 1); }},
      {kRemoteWrite,
       [](ConnectionBench& b) {
         auto packet = b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 8);
         packet.payload = kWord;
         return packet;
       }},
      {kFlushGlobal, [](ConnectionBench& b) { return flush(b, 1); }},
      {kFlushPersistent, [](ConnectionBench& b) { return flush(b, 2); }},
  };
  for (const Case& one_of : cases) {
    for (const bool on_region : {true, false}) {
      ConnectionBench bench;
      if (!on_region) bench.attributes.access = ConnectionBench::kAll & ~one_of.right;
      bench.bring_up();
      if (on_region) bench.granted_region().access = ConnectionBench::kAll & ~one_of.right;
      EXPECT_EQ(bench.receive(one_of.packet(bench)), Drop::kRemoteAccess) << one_of.right << on_region;
      expect_answer(bench, kAccessNak, psn(0));
    }
    ConnectionBench bench;
    bench.bring_up();
    EXPECT_EQ(bench.receive(one_of.packet(bench)), Drop::kNone) << one_of.right;
  }
}

TEST(Responder, AnotherDomainsMemoryIsNotTouched) {
  ConnectionBench bench;
  bench.bring_up();
  ProtectionDomain other{2};
  bench.granted_region().domain = &other;
  wire::Packet write = bench.incoming_write(Opcode::kRcWriteOnly, psn(0), 8);
  const auto content = pattern(8);
  write.payload = content;
  EXPECT_EQ(bench.receive(write), Drop::kRemoteAccess);
  EXPECT_EQ(bench.granted()[0], std::byte{0});
}

TEST(Responder, AMessageLongerThanItsReceiveEndsTheConnectionAtBothEnds) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, kMtu + 10);
  bench.post_receive(2, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  bench.responses();
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendLast, psn(1), content)), Drop::kReceiveTooSmall);
  expect_answer(bench, kInvalidNak, psn(1));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 1U);
  EXPECT_EQ(completion->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(bench.received()->status, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  EXPECT_FALSE(bench.qp().poll_event()) << "a completion has told it";
}

TEST(Responder, AReceiveThatMayNotBeWrittenIsAnOperationalError) {
  ConnectionBench bench;
  bench.bring_up();
  const Sge bad{1, 64, 0xbad};
  ASSERT_EQ(bench.qp().post_receive(1, {&bad, 1}), 0);
  const auto content = pattern(8);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kReceiveProtection);
  expect_answer(bench, kOperationalNak, psn(0));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

TEST(Responder, AReceiveThatAMessageHasBegunToFillIsFlushedWithTheOthers) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 4096);
  bench.post_receive(2, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  ASSERT_TRUE(bench.go(QpState::kError));
  for (const std::uint64_t wr_id : {1U, 2U}) {
    const auto completion = bench.received();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->wr_id, wr_id);
    EXPECT_EQ(completion->status, WcStatus::kFlushError);
  }
}

TEST(Responder, ABadOpcodeInAMessageFailsItsReceive) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  bench.responses();
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), content)), Drop::kInvalidRequest);
  expect_answer(bench, kInvalidNak, psn(1));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kRemoteInvalidRequestError);
  EXPECT_FALSE(bench.qp().poll_event());
}

TEST(Responder, OfNothingTouchesNothing) {
  ConnectionBench bench;
  bench.bring_up();
  wire::Packet write = with_key(bench.incoming_write(Opcode::kRcWriteOnly, psn(0), 0), 0xffffffff);
  EXPECT_EQ(bench.receive(write), Drop::kNone) << "the key is not looked at";
  expect_answer(bench, kAck, psn(0));
}

// --- whose packets

TEST(Responder, PacketsFromElsewhereAreNotThePeers) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 64);
  Envelope forged = bench.envelope();
  forged.source = bench.host().gid(1);
  EXPECT_EQ(bench.receive_from(send(bench, Opcode::kRcSendOnly, psn(0), {}), forged), Drop::kNotThePeer);
  forged = bench.envelope();
  forged.destination = bench.host().gid(2);
  EXPECT_EQ(bench.receive_from(send(bench, Opcode::kRcSendOnly, psn(0), {}), forged), Drop::kNotThePeer);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(0), {})), Drop::kOpcodeNotForQp);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUdSendOnly, psn(0), {})), Drop::kOpcodeNotForQp);
  wire::Packet packet = send(bench, Opcode::kRcSendOnly, psn(0), {});
  packet.bth.pkey = Pkey(0x8001);
  EXPECT_EQ(bench.receive(packet), Drop::kPkeyMismatch);
  EXPECT_TRUE(bench.responses().empty());
  EXPECT_FALSE(bench.received());
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {})), Drop::kNone);
}

TEST(Responder, ReceivesFromReadyToReceiveOn) {
  ConnectionBench bench;
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {})), Drop::kBadQpState);
  bench.bring_up(QpState::kInit);
  EXPECT_EQ(bench.post_receive(1, 64), 0);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), {})), Drop::kBadQpState);
  for (const QpState to : {QpState::kReadyToReceive, QpState::kReadyToSend}) {
    ASSERT_TRUE(bench.go(to, edge_of(QpType::kRc, bench.qp().state(), to).required));
    EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(to == QpState::kReadyToSend ? 1 : 0), {})),
              to == QpState::kReadyToReceive ? Drop::kNone : Drop::kNoReceiveRequest);
    if (to == QpState::kReadyToReceive) {
      EXPECT_EQ(bench.qp().poll_event(), QpEvent::kCommunicationEstablished);
      expect_answer(bench, kAck, psn(0));
    }
  }
}

// --- unreliable connections

std::vector<wire::Packet> uc_message(ConnectionBench& bench, std::uint32_t at, std::span<const std::byte> content) {
  std::vector<wire::Packet> packets{send(bench, Opcode::kUcSendFirst, at, content.first(kMtu)),
                                    send(bench, Opcode::kUcSendMiddle, at + 1, content.subspan(kMtu, kMtu)),
                                    send(bench, Opcode::kUcSendLast, at + 2, content.subspan(2 * kMtu))};
  return packets;
}

TEST(Responder, UcDropsTheMessageThatLacksAPacketAndTakesTheNext) {
  for (std::size_t lost = 0; lost < 3; ++lost) {
    ConnectionBench bench(QpType::kUc);
    bench.bring_up();
    bench.post_receive(1, 4096);
    const auto first = pattern(2 * kMtu + 8, 1);
    const auto second = pattern(2 * kMtu + 8, 99);
    const auto packets = uc_message(bench, psn(0), first);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i != lost) bench.receive(packets[i]);
    }
    EXPECT_FALSE(bench.received()) << lost;
    for (const auto& packet : uc_message(bench, psn(3), second)) EXPECT_EQ(bench.receive(packet), Drop::kNone);
    const auto completion = bench.received();
    ASSERT_TRUE(completion) << lost;
    EXPECT_EQ(completion->wr_id, 1U);
    EXPECT_EQ(completion->status, WcStatus::kSuccess);
    EXPECT_TRUE(std::equal(second.begin(), second.end(), bench.host().bytes().begin() + 0x4000));
    EXPECT_TRUE(bench.responses().empty()) << "it never answers";
    EXPECT_EQ(bench.qp().state(), QpState::kReadyToSend);
  }
}

TEST(Responder, UcDeliversNoMessageTwiceAndNoneLate) {
  ConnectionBench bench(QpType::kUc);
  bench.bring_up();
  for (std::uint64_t i = 1; i <= 4; ++i) bench.post_receive(i, 64);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(1), {})), Drop::kNone);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(1), {})), Drop::kOutOfSequence);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(0), {})), Drop::kOutOfSequence);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(2), {})), Drop::kNone);
  // A sender that has begun anew, far away.
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(0x700000), {})), Drop::kNone);
}

TEST(Responder, UcRefusesInSilence) {
  ConnectionBench bench(QpType::kUc);
  bench.bring_up();
  const auto content = pattern(8);
  wire::Packet write = with_key(bench.incoming_write(Opcode::kUcWriteOnly, psn(0), 8), 0x1234);
  write.payload = content;
  EXPECT_EQ(bench.receive(write), Drop::kRemoteAccess);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(1), content)), Drop::kNoReceiveRequest);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendMiddle, psn(2), content)), Drop::kInvalidRequest);
  EXPECT_EQ(bench.qp().state(), QpState::kReadyToSend);
  EXPECT_TRUE(bench.responses().empty());
  bench.post_receive(1, 64);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kUcSendOnly, psn(3), content)), Drop::kNone);
}

}  // namespace
}  // namespace verbena::engine
