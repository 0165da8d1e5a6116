#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "engine/responder.h"
#include "engine/testing/responder_facts.h"
#include "wire/credit.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::responder::fetch_add;
using testing::responder::kAccessNak;
using testing::responder::kInvalidNak;
using testing::responder::kMtu;
using testing::responder::psn;
using testing::responder::send;
using wire::Opcode;

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
  ASSERT_TRUE(bench.qp().poll_response(bench.now, packet));
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
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_response(bench.now, packet));
  bench.qp().on_responded(2);
  bench.qp().rewind_responses();
  bench.host().memory().remove(bench.rkey());
  ASSERT_TRUE(bench.qp().poll_response(bench.now, batch[0]));
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
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_response(bench.now, packet));
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

}  // namespace
}  // namespace verbena::engine
