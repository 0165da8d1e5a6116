#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "engine/requester.h"
#include "engine/testing/requester_facts.h"
#include "wire/rnr_timer.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::requester::expect_completion;
using testing::requester::kMtu;
using testing::requester::psn;
using wire::NakCode;
using wire::Opcode;
using wire::Syndrome;

TEST(Requester, CompletesWhatAnAcknowledgementCovers) {
  ConnectionBench bench;
  bench.bring_up();
  for (std::uint64_t i = 1; i <= 4; ++i) bench.post(SendOpcode::kSend, 16, i, i == 3 ? 0 : kSendSignaled);
  ASSERT_EQ(bench.requests().size(), 4U);
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.acknowledge(psn(2)), Drop::kNone);
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kSuccess);
  EXPECT_FALSE(bench.sent()) << "the third asked for no completion, the fourth is not done";
  EXPECT_EQ(bench.acknowledge(psn(1)), Drop::kNone) << "an old one changes nothing";
  bench.acknowledge(psn(3));
  expect_completion(bench, 4, WcStatus::kSuccess);
  EXPECT_FALSE(bench.qp().next_timeout());
}

TEST(Requester, DoesNotBelieveAnAnswerToWhatWasNeverSent) {
  ConnectionBench bench;
  bench.bring_up();
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kUnexpectedResponse);
  bench.post(SendOpcode::kSend);
  bench.post(SendOpcode::kSend);
  Transmit packet;
  ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kUnexpectedResponse) << "the transport has not taken it yet";
  bench.qp().on_transmitted(1);
  EXPECT_EQ(bench.acknowledge(psn(1)), Drop::kUnexpectedResponse);
  EXPECT_EQ(bench.answer(Syndrome::nak(NakCode::kRemoteAccessError), psn(5)), Drop::kUnexpectedResponse);
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseOnly, psn(0), {}), Drop::kUnexpectedResponse);
  EXPECT_EQ(bench.atomic_response(psn(0), 7), Drop::kUnexpectedResponse);
  EXPECT_EQ(bench.answer(Syndrome(0x40), psn(0)), Drop::kBadSyndrome);
  EXPECT_EQ(bench.answer(Syndrome(0x65), psn(0)), Drop::kBadSyndrome);
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kNone);
  EXPECT_TRUE(bench.sent());
}

TEST(Requester, AnswersFromAnotherAddressAreNotThePeers) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend);
  bench.requests();
  wire::Packet packet = bench.incoming(Opcode::kRcAcknowledge, psn(0));
  packet.aeth = {Syndrome::ack(0x1f), 1};
  Envelope forged = bench.envelope();
  forged.source = bench.host().gid(1);
  EXPECT_EQ(bench.qp().on_response(packet, forged, bench.now), Drop::kNotThePeer);
  packet.bth.opcode = Opcode::kXrcAcknowledge;
  EXPECT_EQ(bench.qp().on_response(packet, bench.envelope(), bench.now), Drop::kOpcodeNotForQp);
  packet.bth.opcode = Opcode::kRcAcknowledge;
  packet.bth.pkey = Pkey(0x8001);
  EXPECT_EQ(bench.qp().on_response(packet, bench.envelope(), bench.now), Drop::kPkeyMismatch);
  EXPECT_FALSE(bench.sent());
}

struct Refusal {
  NakCode code;
  WcStatus status;
};

class RequesterRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RequesterRefusalTest, FailsTheRequestAndFlushesTheRestInOrder) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(100, 64);
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaWrite, 3 * kMtu, 2, 0);  // not signaled, and completes all the same
  bench.post(SendOpcode::kSend, 16, 3, 0);
  bench.requests();
  bench.post(SendOpcode::kSend, 16, 4);  // not sent yet
  bench.answer(Syndrome::nak(GetParam().code), psn(2));
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, GetParam().status);
  expect_completion(bench, 3, WcStatus::kFlushError);
  expect_completion(bench, 4, WcStatus::kFlushError);
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  const auto receive = bench.received();
  ASSERT_TRUE(receive) << "receives are flushed too";
  EXPECT_EQ(receive->wr_id, 100U);
  EXPECT_EQ(receive->status, WcStatus::kFlushError);
  EXPECT_TRUE(bench.requests().empty());
  EXPECT_EQ(bench.acknowledge(psn(4)), Drop::kBadQpState);
  EXPECT_EQ(bench.post(SendOpcode::kSend, 16, 5), 0);
  expect_completion(bench, 5, WcStatus::kFlushError);
  EXPECT_FALSE(bench.qp().next_timeout());
}

INSTANTIATE_TEST_SUITE_P(Codes, RequesterRefusalTest,
                         ::testing::Values(Refusal{NakCode::kInvalidRequest, WcStatus::kRemoteInvalidRequestError},
                                           Refusal{NakCode::kRemoteAccessError, WcStatus::kRemoteAccessError},
                                           Refusal{NakCode::kRemoteOperationalError, WcStatus::kRemoteOperationError},
                                           Refusal{NakCode::kInvalidRdRequest, WcStatus::kRemoteInvalidRequestError}));

// --- receiver not ready

TEST(Requester, WaitsAsLongAsAnRnrNakSays) {
  for (std::uint8_t code = 0; code < 32; ++code) {
    ConnectionBench bench;
    bench.bring_up();
    bench.post(SendOpcode::kSend);
    bench.post(SendOpcode::kSend);
    bench.requests();
    bench.answer(Syndrome::rnr_nak(code), psn(0));
    EXPECT_TRUE(bench.requests().empty());
    EXPECT_FALSE(bench.qp().has_untransmitted());
    ASSERT_TRUE(bench.qp().next_timeout());
    EXPECT_EQ(*bench.qp().next_timeout() - bench.now, wire::rnr_delay(code)) << int{code};
    bench.answer(Syndrome::rnr_nak(code), psn(0));  // a copy costs no retry
    bench.run_timer();
    EXPECT_EQ(bench.requests().size(), 2U);
    EXPECT_EQ(bench.events().count(TransportEvent::kRnrNakReceived), 1);
    EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 0);
  }
}

class RnrRetryTest : public ::testing::TestWithParam<int> {};

TEST_P(RnrRetryTest, FailsAfterSoManyRetries) {
  const int retries = GetParam();
  ConnectionBench bench;
  bench.attributes.rnr_retry = static_cast<std::uint8_t>(retries);
  bench.attributes.retry_count = 0;  // the two counts have nothing to do with each other
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaWrite, 16, 2);
  const int most = retries == 7 ? 1000 : retries;
  for (int i = 0; i < most; ++i) {
    ASSERT_EQ(bench.requests().size(), 2U);
    bench.answer(Syndrome::rnr_nak(1), psn(0));
    ASSERT_EQ(bench.qp().state(), QpState::kReadyToSend) << i;
    ASSERT_TRUE(bench.run_timer());
  }
  bench.requests();
  bench.answer(Syndrome::rnr_nak(1), psn(0));
  if (retries == 7) {
    EXPECT_EQ(bench.qp().state(), QpState::kReadyToSend) << "7 is without end";
    return;
  }
  expect_completion(bench, 1, WcStatus::kRnrRetryExceededError);
  expect_completion(bench, 2, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

INSTANTIATE_TEST_SUITE_P(Counts, RnrRetryTest, ::testing::Range(0, 8));

TEST(Requester, AnRnrNakAcknowledgesWhatCameBefore) {
  ConnectionBench bench;
  bench.bring_up();
  for (std::uint64_t i = 1; i <= 3; ++i) bench.post(SendOpcode::kSend, 16, i);
  bench.requests();
  bench.answer(Syndrome::rnr_nak(1), psn(2));
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kSuccess);
  bench.run_timer();
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].psn(), psn(2));
}

// The kernel's rxe answers what follows a request without a receive by a sequence NAK each time.
TEST(Requester, ASequenceNakBesideAnRnrNakCostsNoRetry) {
  for (const bool late : {false, true}) {
    ConnectionBench bench;
    bench.attributes.retry_count = 1;
    bench.attributes.rnr_retry = 7;
    bench.bring_up();
    for (std::uint64_t i = 1; i <= 3; ++i) bench.post(SendOpcode::kSend, 16, i);
    for (int round = 0; round < 10; ++round) {
      bench.requests();
      bench.answer(Syndrome::rnr_nak(1), psn(0));
      if (late) bench.run_timer();
      bench.answer(Syndrome::nak(NakCode::kPsnSequenceError), psn(0));
      ASSERT_EQ(bench.qp().state(), QpState::kReadyToSend) << "round " << round << (late ? ", late" : "");
      if (!late) bench.run_timer();
    }
  }
}

// --- reads and atomics

TEST(Requester, AReadFillsTheMemoryAsItsAnswersCome) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 2 * kMtu + 8, 1);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(sent[0].packet.reth.length, 2 * kMtu + 8);
  const auto content = pattern(2 * kMtu + 8);
  const std::span<const std::byte> all(content);
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseFirst, psn(0), all.first(kMtu)), Drop::kNone);
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseMiddle, psn(1), all.subspan(kMtu, kMtu)), Drop::kNone);
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseLast, psn(2), all.subspan(2 * kMtu)), Drop::kNone);
  const auto completion = bench.sent();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->opcode, WcOpcode::kRdmaRead);
  EXPECT_EQ(completion->byte_length, 2 * kMtu + 8);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), bench.host().bytes().begin()));
}

TEST(Requester, AsksAgainForTheRestOfAReadWhenAnAnswerIsMissing) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 4 * kMtu, 1);
  bench.requests();
  const auto content = pattern(kMtu);
  bench.read_response(Opcode::kRcReadResponseFirst, psn(0), content);
  bench.read_response(Opcode::kRcReadResponseMiddle, psn(2), content);  // the one before it is lost
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(again[0].psn(), psn(1));
  EXPECT_EQ(again[0].packet.reth.address, 0x1000U + kMtu);
  EXPECT_EQ(again[0].packet.reth.length, 3 * kMtu);
}

TEST(Requester, AnAcknowledgementBeyondAReadMeansThatItsAnswerIsLost) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaRead, 16, 2);
  bench.post(SendOpcode::kSend, 16, 3);
  bench.requests();
  bench.acknowledge(psn(2));
  expect_completion(bench, 1, WcStatus::kSuccess);
  EXPECT_FALSE(bench.sent());
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(again[0].psn(), psn(1));
}

TEST(Requester, OnlySoManyReadsAndAtomicsAreOpenAtOnce) {
  for (const int most : {1, 2, 16}) {
    ConnectionBench bench;
    bench.attributes.max_rd_atomic = static_cast<std::uint8_t>(most);
    bench.bring_up();
    for (int i = 0; i < 20; ++i) bench.post(i % 2 == 0 ? SendOpcode::kRdmaRead : SendOpcode::kFetchAdd, 8);
    EXPECT_EQ(static_cast<int>(bench.requests().size()), most);
    EXPECT_FALSE(bench.qp().has_untransmitted());
    const auto content = pattern(8);
    bench.read_response(Opcode::kRcReadResponseOnly, psn(0), content);
    EXPECT_EQ(bench.requests().size(), 1U);
    bench.run_timer();
    EXPECT_EQ(static_cast<int>(bench.requests().size()), most) << "also when they are sent again";
  }
}

TEST(Requester, ALongReadIsAskedForInPiecesThatFitTheWindow) {
  ConnectionBench bench(QpType::kRc, 8);
  bench.attributes.max_rd_atomic = 16;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 10 * kMtu, 1);
  auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1].psn(), psn(4));
  EXPECT_EQ(sent[1].packet.reth.address, 0x1000U + 4 * kMtu);
  EXPECT_EQ(sent[1].packet.reth.length, 4 * kMtu);
  const auto content = pattern(kMtu);
  for (std::uint32_t i = 0; i < 4; ++i) bench.read_response(Opcode::kRcReadResponseMiddle, psn(i), content);
  sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].packet.reth.length, 2 * kMtu);
  for (std::uint32_t i = 4; i < 10; ++i) bench.read_response(Opcode::kRcReadResponseMiddle, psn(i), content);
  expect_completion(bench, 1, WcStatus::kSuccess);
}

TEST(Requester, AReadResponseOfTheWrongLengthFailsTheRequest) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 100, 1);
  bench.requests();
  const auto content = pattern(101);
  bench.read_response(Opcode::kRcReadResponseOnly, psn(0), content);
  expect_completion(bench, 1, WcStatus::kBadResponseError);
  EXPECT_EQ(bench.host().bytes()[0], std::byte{0}) << "nothing of it is placed";
}

TEST(Requester, AnAtomicBringsTheOriginalValue) {
  ConnectionBench bench;
  bench.bring_up();
  SendRequest request = bench.request(SendOpcode::kCompareSwap, 8, 1);
  request.compare_add = 11;
  request.swap = 22;
  ASSERT_EQ(bench.qp().post_send(request), 0);
  request = bench.request(SendOpcode::kFetchAdd, 8, 2);
  request.compare_add = 33;
  ASSERT_EQ(bench.qp().post_send(request), 0);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].packet.atomic_eth.compare, 11U);
  EXPECT_EQ(sent[0].packet.atomic_eth.swap_or_add, 22U);
  EXPECT_EQ(sent[1].packet.atomic_eth.swap_or_add, 33U);
  bench.atomic_response(psn(1), 5);  // the answer of the first is missing
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.requests().size(), 2U) << "asked again";
  bench.atomic_response(psn(0), 0x0102030405060708);
  expect_completion(bench, 1, WcStatus::kSuccess);
  std::uint64_t value = 0;
  std::memcpy(&value, bench.host().bytes().data(), sizeof value);
  EXPECT_EQ(value, 0x0102030405060708U);
}

TEST(Requester, AnAtomicIsOfEightBytes) {
  for (const SendOpcode opcode : {SendOpcode::kCompareSwap, SendOpcode::kFetchAdd, SendOpcode::kAtomicWrite}) {
    for (const std::uint32_t length : {0U, 4U, 9U, 16U}) {
      ConnectionBench bench;
      bench.bring_up();
      ASSERT_EQ(bench.post(opcode, length, 1), 0);
      EXPECT_TRUE(bench.requests().empty());
      expect_completion(bench, 1, WcStatus::kLocalLengthError);
    }
  }
}

TEST(Requester, AFlushIsOnePacketHoweverLongItsRange) {
  ConnectionBench bench;
  bench.attributes.max_rd_atomic = 1;
  bench.bring_up();
  SendRequest flush = bench.request(SendOpcode::kFlush, 1'000'000, 1);
  flush.immediate = 0x11;
  ASSERT_EQ(bench.qp().post_send(flush), 0);
  bench.post(SendOpcode::kAtomicWrite, 8, 2);
  auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U) << "it is answered like a read, and counts as one";
  EXPECT_EQ(sent[0].packet.reth.length, 1'000'000U);
  EXPECT_EQ(sent[0].packet.feth.placement, 1);
  EXPECT_EQ(sent[0].packet.feth.selection, 1);
  bench.read_response(Opcode::kRcReadResponseOnly, psn(0), {});
  expect_completion(bench, 1, WcStatus::kSuccess);
  sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].opcode(), Opcode::kRcAtomicWrite);
  EXPECT_EQ(sent[0].psn(), psn(1));
  EXPECT_EQ(sent[0].payload.size(), 8U);
}

}  // namespace
}  // namespace verbena::engine
