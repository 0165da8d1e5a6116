// Selective repeat at each end, packet by packet: the responder keeps and tells, the requester asks for what is
// missing.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "engine/selective_mark.h"
#include "engine/testing/requester_facts.h"
#include "engine/testing/responder_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::SentPacket;
using wire::Opcode;
using wire::SelectiveEth;
using wire::Syndrome;

constexpr std::uint32_t kMtu = ConnectionBench::kMtu;
constexpr std::uint32_t kIntroduction = PeerAbility::kEnough;

// --- the responder

std::uint32_t expected(std::uint32_t count) {
  return testing::responder::psn(kIntroduction + count);
}

// The other end has sent as many marked writes of nothing as it takes.
void introduce(ConnectionBench& bench) {
  bench.bring_up();
  for (std::uint32_t i = 0; i < kIntroduction; ++i) {
    wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, testing::responder::psn(i), 0);
    packet.bth.migration_request = selective_mark(packet.bth.psn, packet.bth.destination_qpn);
    ASSERT_EQ(bench.receive(packet), Drop::kNone);
  }
  bench.responses();
}

wire::Packet write_at(ConnectionBench& bench, std::uint32_t count, std::span<const std::byte> payload) {
  wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, expected(count),
                                             static_cast<std::uint32_t>(payload.size()), std::size_t{count} * 16);
  packet.payload = payload;
  return packet;
}

std::vector<std::uint32_t> told(const SentPacket& packet) {
  std::vector<std::uint32_t> ahead;
  for (std::uint32_t i = 0; i < SelectiveEth::kPackets; ++i) {
    if (packet.packet.selective_eth.has(i)) ahead.push_back(i + 1);
  }
  return ahead;
}

TEST(SelectiveResponder, KeepsWhatCameEarlyAndTellsOfIt) {
  ConnectionBench bench;
  introduce(bench);
  const auto bytes = pattern(16);
  for (const std::uint32_t count : {1U, 2U, 4U}) EXPECT_EQ(bench.receive(write_at(bench, count, bytes)), Drop::kNone);
  auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kSelectiveAcknowledge);
  EXPECT_EQ(answers[0].psn(), expected(0));
  EXPECT_EQ(told(answers[0]), (std::vector<std::uint32_t>{1, 2, 4}));
  EXPECT_EQ(bench.granted()[16], std::byte{0}) << "nothing is done before its turn";

  EXPECT_EQ(bench.receive(write_at(bench, 0, bytes)), Drop::kNone);
  answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kRcAcknowledge);
  EXPECT_EQ(answers[0].psn(), expected(2));
  EXPECT_TRUE(std::ranges::equal(bench.granted().subspan(32, 16), bytes));
  EXPECT_EQ(bench.granted()[64], std::byte{0});
  EXPECT_EQ(bench.receive(write_at(bench, 3, bytes)), Drop::kNone);
  EXPECT_EQ(bench.responses().at(0).psn(), expected(4));
  EXPECT_EQ(bench.events().count(TransportEvent::kKeptEarly), 3);
}

TEST(SelectiveResponder, ARepetitionWhileSomethingIsMissingIsToldWhatIsKept) {
  ConnectionBench bench;
  introduce(bench);
  bench.receive(write_at(bench, 1, {}));
  bench.responses();
  bench.receive(bench.incoming_write(Opcode::kRcWriteOnly, testing::responder::psn(kIntroduction - 1), 0));
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(told(answers[0]), (std::vector<std::uint32_t>{1}));
}

TEST(SelectiveResponder, AStandardPeerGetsANakAndIsKeptNothing) {
  for (const bool mark : {false, true}) {
    ConnectionBench bench;
    bench.bring_up();
    for (std::uint32_t i = 0; i < 200; ++i) {
      wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, testing::responder::psn(i), 0);
      packet.bth.migration_request = mark;
      ASSERT_EQ(bench.receive(packet), Drop::kNone);
    }
    bench.responses();
    EXPECT_EQ(bench.receive(bench.incoming_write(Opcode::kRcWriteOnly, testing::responder::psn(201), 0)),
              Drop::kOutOfSequence);
    testing::responder::expect_answer(bench, testing::responder::kSequenceNak, testing::responder::psn(200));
  }
}

TEST(SelectiveResponder, AtomicsAndReadsWaitForTheirTurn) {
  ConnectionBench bench;
  introduce(bench);
  wire::Packet read = bench.incoming_write(Opcode::kRcReadRequest, expected(2), 8);
  bench.receive(read);
  bench.receive(testing::responder::fetch_add(bench, expected(1), 5));
  bench.receive(testing::responder::fetch_add(bench, expected(1), 5));  // a copy
  EXPECT_EQ(bench.responses().at(0).opcode(), Opcode::kSelectiveAcknowledge);
  EXPECT_EQ(bench.granted()[0], std::byte{0});
  bench.receive(testing::responder::fetch_add(bench, expected(0), 2));
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[1].packet.atomic_ack_eth.original, 2U);
  EXPECT_EQ(answers[2].opcode(), Opcode::kRcReadResponseOnly);
  EXPECT_EQ(answers[2].payload[0], std::byte{7});
}

// The receives are taken in order, and what finds none is asked for again as ever.
TEST(SelectiveResponder, AnEarlyMessageThatFindsNoReceiveIsNotReady) {
  ConnectionBench bench;
  introduce(bench);
  bench.post_receive(1, 64);
  bench.receive(testing::responder::send(bench, Opcode::kRcSendOnly, expected(1), {}));
  EXPECT_FALSE(bench.received());
  bench.responses();
  bench.receive(testing::responder::send(bench, Opcode::kRcSendOnly, expected(0), {}));
  EXPECT_EQ(bench.received()->wr_id, 1U);
  auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].syndrome(), testing::responder::kRnrNak);
  EXPECT_EQ(answers[1].psn(), expected(1));
  bench.post_receive(2, 64);
  EXPECT_EQ(bench.receive(testing::responder::send(bench, Opcode::kRcSendOnly, expected(1), {})), Drop::kNone);
  EXPECT_EQ(bench.received()->wr_id, 2U);
}

TEST(SelectiveResponder, AnEarlyRequestThatIsRefusedIsRefusedInItsTurn) {
  ConnectionBench bench;
  introduce(bench);
  bench.receive(testing::responder::with_key(write_at(bench, 1, pattern(8)), 0x999));
  EXPECT_NE(bench.qp().state(), QpState::kError);
  bench.receive(write_at(bench, 2, pattern(8)));
  bench.responses();
  bench.receive(write_at(bench, 0, pattern(8)));
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  EXPECT_EQ(bench.granted()[32], std::byte{0}) << "nothing behind it is done";
  const auto answers = bench.responses();
  EXPECT_EQ(answers.back().syndrome(), testing::responder::kAccessNak);
  EXPECT_EQ(answers.back().psn(), expected(1));
}

// --- the requester

Drop tell(ConnectionBench& bench, std::uint32_t missing, std::initializer_list<std::uint32_t> ahead) {
  wire::Packet packet = bench.incoming(Opcode::kSelectiveAcknowledge, testing::requester::psn(missing));
  packet.aeth = {Syndrome::ack(0x1f), 0};
  for (const std::uint32_t count : ahead) packet.selective_eth.add(count - 1);
  return bench.respond(packet);
}

std::vector<std::uint32_t> numbers(const std::vector<SentPacket>& packets) {
  std::vector<std::uint32_t> psns;
  for (const SentPacket& packet : packets) {
    psns.push_back((packet.psn() - ConnectionBench::kSendPsn) & Psn::kMask);
  }
  return psns;
}

using Numbers = std::vector<std::uint32_t>;

TEST(SelectiveRequester, SendsAgainWhatIsMissingAndNothingElse) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 10 * kMtu, 7);
  ASSERT_EQ(bench.requests().size(), 10U);
  EXPECT_EQ(tell(bench, 2, {1, 2, 4, 5}), Drop::kNone);  // 2 and 5 are missing; 8 and 9 may be on their way
  EXPECT_TRUE(bench.requests().empty()) << "it may only have been overtaken";
  ASSERT_TRUE(bench.run_timer());
  const auto again = bench.requests();
  EXPECT_EQ(numbers(again), (Numbers{2, 5}));
  EXPECT_EQ(again[0].opcode(), Opcode::kRcWriteMiddle);
  EXPECT_TRUE(again[0].packet.bth.ack_request);
  EXPECT_EQ(bench.events().count(TransportEvent::kSentAgain), 2);
  bench.acknowledge(testing::requester::psn(9));
  testing::requester::expect_completion(bench, 7, WcStatus::kSuccess);
  EXPECT_FALSE(bench.qp().next_timeout());
}

TEST(SelectiveRequester, WhatWasOvertakenIsNotSentAgain) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 10 * kMtu);
  bench.requests();
  tell(bench, 2, {1, 2});
  bench.acknowledge(testing::requester::psn(4));
  bench.now = bench.now + 2 * SelectiveRepeat::kPatience;
  bench.qp().on_timeout(bench.now);
  EXPECT_TRUE(bench.requests().empty());
  EXPECT_EQ(bench.events().count(TransportEvent::kSentAgain), 0);
}

TEST(SelectiveRequester, WhatIsLostASecondTimeIsSentAThird) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 4 * kMtu);
  bench.requests();
  tell(bench, 1, {1, 2});
  ASSERT_TRUE(bench.run_timer());
  EXPECT_EQ(numbers(bench.requests()), (Numbers{1}));
  tell(bench, 1, {1, 2});
  EXPECT_TRUE(bench.requests().empty()) << "the repetition is on its way";
  ASSERT_TRUE(bench.run_timer());
  ASSERT_TRUE(bench.run_timer());
  EXPECT_EQ(numbers(bench.requests()), (Numbers{1}));
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 0);
}

TEST(SelectiveRequester, AfterASecondTimeoutEverythingIsSentAgain) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 4 * kMtu);
  bench.requests();
  tell(bench, 1, {1, 2});
  std::size_t most = 0;
  for (int i = 0; i < 8 && bench.events().count(TransportEvent::kTimeout) < 2; ++i) {
    bench.run_timer();
    most = std::max(most, bench.requests().size());
  }
  EXPECT_EQ(most, 3U);
}

// Nothing follows that would show that the last answers are missing.
TEST(SelectiveRequester, TheTailOfAReadIsAskedForAtTheFirstTimeout) {
  ConnectionBench bench;
  bench.attributes.retry_count = 1;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaRead, 4 * kMtu, 2);
  bench.requests();
  tell(bench, 1, {});
  testing::requester::expect_completion(bench, 1, WcStatus::kSuccess);
  const auto bytes = pattern(4 * kMtu);
  for (std::uint32_t number = 0; number < 3; ++number) {
    const auto part = std::span(bytes).subspan(std::size_t{number} * kMtu, kMtu);
    const Opcode opcode = number == 0 ? Opcode::kRcReadResponseFirst : Opcode::kRcReadResponseMiddle;
    ASSERT_EQ(bench.read_response(opcode, testing::requester::psn(1 + number), part), Drop::kNone);
  }
  ASSERT_TRUE(bench.run_timer());
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(again[0].psn(), testing::requester::psn(4));
  EXPECT_EQ(again[0].packet.reth.length, kMtu);
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 1);
}

TEST(SelectiveRequester, AStandardPeersNakMeansToGoBack) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 6 * kMtu);
  bench.requests();
  bench.answer(Syndrome::nak(wire::NakCode::kPsnSequenceError), testing::requester::psn(2));
  EXPECT_EQ(numbers(bench.requests()), (Numbers{2, 3, 4, 5}));
}

TEST(SelectiveRequester, ReadsAskForTheMissingPartAlone) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaRead, 6 * kMtu, 2);
  bench.requests();
  tell(bench, 1, {});  // by which the other end is known
  testing::requester::expect_completion(bench, 1, WcStatus::kSuccess);
  const auto bytes = pattern(6 * kMtu);
  const auto arrives = [&](std::uint32_t number) {
    const auto part = std::span(bytes).subspan(std::size_t{number} * kMtu, kMtu);
    return bench.read_response(Opcode::kRcReadResponseMiddle, testing::requester::psn(1 + number), part);
  };
  for (const std::uint32_t number : {0U, 3U, 5U}) EXPECT_EQ(arrives(number), Drop::kNone);
  ASSERT_TRUE(bench.run_timer());
  auto again = bench.requests();
  ASSERT_EQ(numbers(again), (Numbers{2}));
  EXPECT_EQ(again[0].packet.reth.length, 2 * kMtu);
  EXPECT_EQ(again[0].packet.reth.address, 0x1000U + kMtu);
  ASSERT_TRUE(bench.run_timer());  // that of the second gap, which was seen later
  again = bench.requests();
  ASSERT_EQ(numbers(again), (Numbers{5}));
  EXPECT_EQ(again[0].packet.reth.length, kMtu);
  for (const std::uint32_t number : {1U, 2U, 4U}) EXPECT_EQ(arrives(number), Drop::kNone);
  testing::requester::expect_completion(bench, 2, WcStatus::kSuccess);
  EXPECT_TRUE(std::ranges::equal(bench.host().bytes().first(bytes.size()), bytes));
}

TEST(SelectiveRequester, ARefusalWaitsForTheAnswersBeforeIt) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, kMtu, 1);
  bench.post(SendOpcode::kRdmaWrite, 16, 2);
  bench.requests();
  tell(bench, 0, {});
  bench.answer(Syndrome::nak(wire::NakCode::kRemoteAccessError), testing::requester::psn(1));
  EXPECT_FALSE(bench.sent());
  bench.read_response(Opcode::kRcReadResponseOnly, testing::requester::psn(0), pattern(kMtu));
  testing::requester::expect_completion(bench, 1, WcStatus::kSuccess);
  testing::requester::expect_completion(bench, 2, WcStatus::kRemoteAccessError);
}

TEST(SelectiveRequester, WhatTheTransportDidNotTakeIsSentAgainLater) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 8 * kMtu);
  bench.requests();
  tell(bench, 0, {2, 4, 6});
  ASSERT_TRUE(bench.run_timer());
  std::array<Transmit, 8> batch;
  std::size_t count = 0;
  while (count < batch.size() && bench.qp().poll_transmit(bench.now, batch[count])) ++count;
  EXPECT_EQ(count, 4U);
  bench.qp().on_transmitted(1);
  bench.qp().rewind_transmit();
  EXPECT_TRUE(bench.qp().has_untransmitted());
  EXPECT_EQ(numbers(bench.requests()), (Numbers{1, 3, 5}));
}

TEST(SelectiveRequester, ToldOfWhatWasNeverSentItKeepsQuiet) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 2 * kMtu);
  bench.requests();
  EXPECT_EQ(tell(bench, 3, {}), Drop::kUnexpectedResponse);
  tell(bench, 1, {1, 50, 128});
  bench.now = bench.now + 2 * SelectiveRepeat::kPatience;
  bench.qp().on_timeout(bench.now);
  EXPECT_TRUE(bench.requests().empty());
}

}  // namespace
}  // namespace verbena::engine
