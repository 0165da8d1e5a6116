#include "engine/requester.h"

#include <array>
#include <cerrno>

#include <gtest/gtest.h>

#include "engine/testing/requester_facts.h"
#include "wire/credit.h"

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

// --- sending again

TEST(Requester, GoesBackToWhatASequenceNakAsksFor) {
  ConnectionBench bench;
  bench.bring_up();
  for (std::uint64_t i = 1; i <= 4; ++i) bench.post(SendOpcode::kSend, 16, i);
  bench.requests();
  bench.answer(Syndrome::nak(NakCode::kPsnSequenceError), psn(2));
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kSuccess);
  EXPECT_FALSE(bench.sent());
  bench.answer(Syndrome::nak(NakCode::kPsnSequenceError), psn(2));  // a copy
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].psn(), psn(2));
  EXPECT_EQ(again[1].psn(), psn(3));
  EXPECT_EQ(bench.events().count(TransportEvent::kRetransmission), 1);
}

TEST(Requester, GoesBackIntoTheMiddleOfAMessage) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 5 * kMtu);
  ASSERT_EQ(bench.requests().size(), 5U);
  bench.answer(Syndrome::nak(NakCode::kPsnSequenceError), psn(3));
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].opcode(), Opcode::kRcWriteMiddle);
  EXPECT_EQ(again[0].psn(), psn(3));
  EXPECT_EQ(again[1].opcode(), Opcode::kRcWriteLast);
}

class RetryCountTest : public ::testing::TestWithParam<int> {};

TEST_P(RetryCountTest, FailsAfterSoManyTimeoutsAndOneInTheTimeThatTheyTake) {
  ConnectionBench bench;
  bench.attributes.retry_count = static_cast<std::uint8_t>(GetParam());
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kSend, 16, 2, 0);
  const Instant begin = bench.now;
  int times = 0;
  while (bench.qp().state() == QpState::kReadyToSend) {
    EXPECT_EQ(bench.requests().size(), 2U);
    ++times;
    ASSERT_TRUE(bench.run_timer());
  }
  EXPECT_EQ(times, GetParam() + 1) << "sent once and retried so often";
  // The first as long as asked for, the second twice, all others four times.
  constexpr std::array kLonger{1, 3, 7, 11, 15, 19, 23, 27};
  const Duration timeout{4096 << 8};
  EXPECT_EQ((bench.now - begin).count(), (timeout * kLonger[static_cast<std::size_t>(GetParam())]).count());
  expect_completion(bench, 1, WcStatus::kRetryExceededError);
  expect_completion(bench, 2, WcStatus::kFlushError);
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), GetParam() + 1);
  EXPECT_EQ(bench.events().count(TransportEvent::kRetryExceeded), 1);
}

INSTANTIATE_TEST_SUITE_P(Counts, RetryCountTest, ::testing::Range(0, 8));

TEST(Requester, ProgressRestoresTheRetries) {
  ConnectionBench bench;
  bench.attributes.retry_count = 1;
  bench.bring_up();
  for (int i = 0; i < 4; ++i) bench.post(SendOpcode::kSend);
  for (std::uint32_t i = 0; i < 4; ++i) {
    bench.requests();
    bench.run_timer();
    bench.requests();
    ASSERT_EQ(bench.qp().state(), QpState::kReadyToSend);
    bench.acknowledge(psn(i));
  }
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 4);
}

TEST(Requester, WithTimeoutZeroItWaitsForEver) {
  ConnectionBench bench;
  bench.attributes.timeout = 0;
  bench.bring_up();
  bench.post(SendOpcode::kSend);
  bench.requests();
  EXPECT_FALSE(bench.qp().next_timeout());
}

TEST(Requester, ATimeoutIsCountedFromTheLastProgress) {
  ConnectionBench bench;
  bench.bring_up();
  for (int i = 0; i < 3; ++i) bench.post(SendOpcode::kSend);
  bench.requests();
  const Instant due = *bench.qp().next_timeout();
  bench.now = bench.now + Duration(1000);
  bench.acknowledge(psn(0));
  EXPECT_EQ(*bench.qp().next_timeout(), due + Duration(1000));
  bench.qp().on_timeout(due);
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 0) << "not yet";
}

// --- order

TEST(Requester, AFencedRequestWaitsForReads) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 16, 1);
  bench.post(SendOpcode::kSend, 16, 2);
  bench.post(SendOpcode::kSend, 16, 3, kSendSignaled | kSendFence);
  EXPECT_EQ(bench.requests().size(), 2U);
  EXPECT_FALSE(bench.qp().has_untransmitted());
  const auto content = pattern(16);
  bench.read_response(Opcode::kRcReadResponseOnly, psn(0), content);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].psn(), psn(2));
}

TEST(Requester, KeepsWithinItsWindow) {
  ConnectionBench bench(QpType::kRc, 4);
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 10 * kMtu, 1);
  auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_TRUE(std::any_of(sent.begin(), sent.end(), [](const auto& one) { return one.packet.bth.ack_request; }))
      << "or it would wait for ever";
  bench.acknowledge(psn(1));
  EXPECT_EQ(bench.requests().size(), 2U);
}

TEST(Requester, ARequestMayTakeHalfOfTheCircleOfPsns) {
  ConnectionBench bench;
  bench.bring_up();
  // 2 GiB in packets of 256 bytes; only the first packets are ever looked at.
  MemoryRegion huge = bench.host().region_of(bench.host().bytes().data(), 1, kLocalWrite);
  huge.length = kMaxMessage;
  ASSERT_TRUE(bench.host().memory().insert(huge));
  const Sge sge{huge.address, kMaxMessage, huge.key.value()};
  SendRequest request = bench.request(SendOpcode::kRdmaWrite, 0, 1);
  request.sges = {&sge, 1};
  bench.post(SendOpcode::kSend, 16, 2, 0);
  ASSERT_EQ(bench.qp().post_send(request), 0);
  Transmit packet;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
    bench.qp().on_transmitted(1);
  }
  bench.acknowledge(psn(0));
  EXPECT_FALSE(bench.sent()) << "none of eight million packets has arrived";
  bench.acknowledge(psn(1));
  EXPECT_FALSE(bench.sent()) << "one has";
  bench.answer(Syndrome::nak(NakCode::kPsnSequenceError), psn(3));
  ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
  wire::Packet decoded;
  ASSERT_EQ(wire::decode_packet(testing::flatten(packet), false, decoded), Drop::kNone);
  EXPECT_EQ(decoded.bth.psn, Psn(psn(3)));
}

TEST(Requester, DrainsWhatHasBegunAndNoMore) {
  ConnectionBench bench(QpType::kRc, 4);
  bench.attributes.sqd_async_notify = true;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 6 * kMtu, 1);
  bench.post(SendOpcode::kSend, 16, 2);
  ASSERT_EQ(bench.requests().size(), 4U);
  ASSERT_TRUE(bench.go(QpState::kSendQueueDrained, kAttrSqdAsyncNotify));
  EXPECT_FALSE(bench.qp().poll_event());
  EXPECT_TRUE(bench.qp().query().send_queue_draining);
  bench.acknowledge(psn(3));
  EXPECT_EQ(bench.requests().size(), 2U) << "the rest of the message";
  EXPECT_TRUE(bench.run_timer());
  EXPECT_EQ(bench.requests().size(), 2U) << "and again where it was lost";
  EXPECT_FALSE(bench.go(QpState::kReadyToSend)) << "it is draining";
  bench.acknowledge(psn(5));
  expect_completion(bench, 1, WcStatus::kSuccess);
  EXPECT_EQ(bench.qp().poll_event(), QpEvent::kSendQueueDrained);
  EXPECT_TRUE(bench.requests().empty());
  ASSERT_TRUE(bench.go(QpState::kReadyToSend));
  EXPECT_EQ(bench.requests().size(), 1U);
}

TEST(Requester, AConnectionThatWillNeverDrainCanBeReset) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.requests();
  ASSERT_TRUE(bench.go(QpState::kSendQueueDrained));
  EXPECT_FALSE(bench.go(QpState::kReadyToSend));
  EXPECT_TRUE(bench.go(QpState::kReset));
  EXPECT_FALSE(bench.qp().next_timeout());
}

TEST(Requester, WhatTheTransportDidNotTakeIsYieldedAgain) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 16);
  bench.post(SendOpcode::kSend, 3 * kMtu);
  std::array<Transmit, 4> batch;
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
  bench.qp().on_transmitted(2);
  bench.qp().rewind_transmit();
  EXPECT_TRUE(bench.qp().has_untransmitted());
  const auto rest = bench.requests();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].psn(), psn(2));
  EXPECT_EQ(rest[0].opcode(), Opcode::kRcSendMiddle);
}

// --- credits

TEST(Requester, SendsAsManyMessagesAsThereAreReceivesAndOneMore) {
  ConnectionBench bench;
  bench.bring_up();
  for (int i = 0; i < 12; ++i) bench.post(SendOpcode::kSend);
  Transmit packet;
  ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
  bench.qp().on_transmitted(1);
  bench.acknowledge(psn(0), wire::credit_code(3));
  EXPECT_EQ(bench.requests().size(), 4U);
  EXPECT_FALSE(bench.qp().has_untransmitted());
  bench.acknowledge(psn(2), wire::credit_code(1));
  EXPECT_TRUE(bench.requests().empty()) << "three were promised, of which two are used";
  bench.acknowledge(psn(4), wire::credit_code(0));
  EXPECT_EQ(bench.requests().size(), 1U) << "one finds out whether there are receives again";
  bench.acknowledge(psn(5), wire::credit_code(2));
  EXPECT_EQ(bench.requests().size(), 3U);
  bench.acknowledge(psn(6), wire::kNoCreditLimit);
  EXPECT_EQ(bench.requests().size(), 3U) << "no limit any more";
}

TEST(Requester, WhatTakesNoReceiveNeedsNoCredit) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend);
  bench.requests();
  bench.acknowledge(psn(0), wire::credit_code(0));
  for (int i = 0; i < 4; ++i) bench.post(SendOpcode::kRdmaWrite);
  bench.post(SendOpcode::kRdmaWriteWithImmediate);
  bench.post(SendOpcode::kRdmaWrite);
  bench.post(SendOpcode::kRdmaRead);
  EXPECT_EQ(bench.requests().size(), 7U);
  bench.post(SendOpcode::kSend);
  EXPECT_TRUE(bench.requests().empty());
}

TEST(Requester, AReadThatConfirmsAMessageLetsTheNextOneGo) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend);
  bench.requests();
  bench.acknowledge(psn(0), wire::credit_code(0));
  bench.post(SendOpcode::kSend);
  bench.post(SendOpcode::kRdmaRead, 8);
  bench.post(SendOpcode::kSend);
  EXPECT_EQ(bench.requests().size(), 2U);
  const auto content = pattern(8);
  bench.read_response(Opcode::kRcReadResponseOnly, psn(2), content);  // the acknowledgement of the send was lost
  EXPECT_EQ(bench.requests().size(), 1U);
}

TEST(Requester, WhatWasAllowedOnceIsSentAgainWithoutCredit) {
  ConnectionBench bench;
  bench.bring_up();
  for (int i = 0; i < 6; ++i) bench.post(SendOpcode::kSend);
  bench.requests();
  bench.acknowledge(psn(0), wire::credit_code(0));
  bench.answer(Syndrome::rnr_nak(1), psn(1));
  bench.run_timer();
  EXPECT_EQ(bench.requests().size(), 1U) << "the first of them asks";
  bench.acknowledge(psn(1), wire::credit_code(8));
  EXPECT_EQ(bench.requests().size(), 4U);
}

// --- states

TEST(Requester, UcCompletesWhatTheTransportTook) {
  ConnectionBench bench(QpType::kUc);
  bench.bring_up();
  bench.post(SendOpcode::kSend, 3 * kMtu, 1);
  bench.post(SendOpcode::kRdmaWriteWithImmediate, 16, 2);
  std::array<Transmit, 4> batch;
  for (Transmit& packet : batch) ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
  bench.qp().on_transmitted(2);
  EXPECT_FALSE(bench.sent());
  bench.qp().on_transmitted(1);
  expect_completion(bench, 1, WcStatus::kSuccess);
  EXPECT_FALSE(bench.sent());
  bench.qp().on_transmitted(1);
  expect_completion(bench, 2, WcStatus::kSuccess);
  EXPECT_FALSE(bench.qp().next_timeout());
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kOpcodeNotForQp);
}

TEST(Requester, UcGoesToTheSendQueueErrorStateAndBack) {
  ConnectionBench bench(QpType::kUc);
  bench.bring_up();
  bench.post_receive(100, 512);
  bench.post(SendOpcode::kSend, 2 * kMtu, 1);
  ASSERT_EQ(bench.post(SendOpcode::kRdmaRead, 16, 2), 0) << "accepted, and fails when its turn comes";
  bench.post(SendOpcode::kSend, 16, 3);
  EXPECT_EQ(bench.requests().size(), 2U);
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kLocalQpOperationError);
  expect_completion(bench, 3, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kSendQueueError);
  EXPECT_FALSE(bench.received()) << "it goes on receiving";
  EXPECT_EQ(bench.post(SendOpcode::kSend, 16, 4), 0);
  expect_completion(bench, 4, WcStatus::kFlushError);
  wire::Packet packet = bench.incoming(Opcode::kUcSendOnly, ConnectionBench::kReceivePsn);
  EXPECT_EQ(bench.receive(packet), Drop::kNone);
  EXPECT_TRUE(bench.received());
  ASSERT_TRUE(bench.go(QpState::kReadyToSend));
  bench.post(SendOpcode::kSend, 16, 5);
  EXPECT_EQ(bench.requests().size(), 1U);
  expect_completion(bench, 5, WcStatus::kSuccess);
}

TEST(Requester, NothingIsHeardOrSentInAStateThatDoesNotSend) {
  ConnectionBench bench;
  EXPECT_EQ(bench.post(SendOpcode::kSend), EINVAL) << "RESET";
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kBadQpState);
  bench.bring_up(QpState::kInit);
  EXPECT_EQ(bench.post(SendOpcode::kSend), EINVAL) << "INIT";
  ConnectionBench other;
  other.bring_up(QpState::kReadyToReceive);
  EXPECT_EQ(other.post(SendOpcode::kSend), EINVAL) << "RTR";
  EXPECT_EQ(other.acknowledge(psn(0)), Drop::kBadQpState);
  ConnectionBench third;
  third.bring_up();
  third.post(SendOpcode::kSend, 16, 1);
  third.requests();
  ASSERT_TRUE(third.go(QpState::kError));
  expect_completion(third, 1, WcStatus::kFlushError);
  EXPECT_EQ(third.acknowledge(psn(0)), Drop::kBadQpState);
  EXPECT_FALSE(third.qp().next_timeout());
}

TEST(Requester, AfterAResetAConnectionBeginsAnew) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaRead, 16, 1);
  bench.post(SendOpcode::kSend, 3 * kMtu, 2);
  bench.requests();
  bench.answer(Syndrome::nak(NakCode::kRemoteAccessError), psn(0));
  while (bench.sent()) continue;
  ASSERT_TRUE(bench.go(QpState::kReset));
  bench.qp().give_back_all();
  bench.attributes.send_psn = 77;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 3);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].psn(), 77U);
  bench.acknowledge(77);
  expect_completion(bench, 3, WcStatus::kSuccess);
}

}  // namespace
}  // namespace verbena::engine
