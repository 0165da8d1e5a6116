#include "engine/requester.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"
#include "wire/credit.h"
#include "wire/rnr_timer.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using wire::NakCode;
using wire::Opcode;
using wire::Syndrome;

constexpr std::uint32_t kFirst = ConnectionBench::kSendPsn;
constexpr std::uint32_t kMtu = ConnectionBench::kMtu;

// The PSN `count` after the first.
std::uint32_t psn(std::uint32_t count) {
  return (kFirst + count) & Psn::kMask;
}

void expect_completion(ConnectionBench& bench, std::uint64_t wr_id, WcStatus status) {
  const auto completion = bench.sent();
  ASSERT_TRUE(completion) << wr_id;
  EXPECT_EQ(completion->wr_id, wr_id);
  EXPECT_EQ(completion->status, status);
}

TEST(Requester, CutsAMessageIntoPacketsOfTheMtu) {
  ConnectionBench bench;
  bench.bring_up();
  const auto content = pattern(2 * kMtu + 5);
  std::copy(content.begin(), content.end(), bench.host().bytes().begin());
  ASSERT_EQ(bench.post(SendOpcode::kSend, 2 * kMtu + 5), 0);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].opcode(), Opcode::kRcSendFirst);
  EXPECT_EQ(sent[1].opcode(), Opcode::kRcSendMiddle);
  EXPECT_EQ(sent[2].opcode(), Opcode::kRcSendLast);
  std::vector<std::byte> all;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[i].psn(), psn(i));
    EXPECT_EQ(sent[i].packet.bth.ack_request, i == 2);
    EXPECT_EQ(sent[i].packet.bth.destination_qpn, Qpn(ConnectionBench::kPeerQpn));
    all.insert(all.end(), sent[i].payload.begin(), sent[i].payload.end());
  }
  EXPECT_EQ(all, content);
  EXPECT_EQ(sent[2].packet.bth.pad_count, 3);
}

// The request of the bad memory fails, and none before it, however little of a batch the transport took.
TEST(Requester, AFaultIsFoundAgainAfterARewind) {
  for (const std::size_t taken : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    ConnectionBench bench;
    bench.bring_up();
    ASSERT_EQ(bench.post(SendOpcode::kSend, 16, 1), 0);
    ASSERT_EQ(bench.post(SendOpcode::kSend, 16, 2), 0);
    SendRequest bad = bench.request(SendOpcode::kSend, 16, 3);
    Sge nowhere = bad.sges[0];
    nowhere.lkey ^= 1;
    bad.sges = {&nowhere, 1};
    ASSERT_EQ(bench.qp().post_send(bad), 0);
    Transmit first;
    Transmit second;
    Transmit third;
    ASSERT_TRUE(bench.qp().poll_transmit(bench.now, first));
    ASSERT_TRUE(bench.qp().poll_transmit(bench.now, second));
    ASSERT_FALSE(bench.qp().poll_transmit(bench.now, third));
    bench.qp().on_transmitted(taken);
    if (taken < 2) bench.qp().rewind_transmit();
    EXPECT_EQ(bench.requests().size(), 2 - taken);
    bench.acknowledge(psn(1));
    expect_completion(bench, 1, WcStatus::kSuccess);
    expect_completion(bench, 2, WcStatus::kSuccess);
    expect_completion(bench, 3, WcStatus::kLocalProtectionError);
  }
}

class AnyWindow final : public WindowBinder {
 public:
  MemoryFault bind(const BindRequest&) noexcept override { return MemoryFault::kNone; }
  MemoryFault invalidate(const ProtectionDomain&, MemoryKey, Qpn) noexcept override { return MemoryFault::kNone; }
};

TEST(Requester, ARequestWithoutPacketsHidesNoFaultBehindIt) {
  AnyWindow windows;
  ConnectionBench bench(QpType::kRc, 128, 64, nullptr, &windows);
  bench.bring_up();
  ASSERT_EQ(bench.post(SendOpcode::kRdmaRead, 16, 1), 0);
  ASSERT_EQ(bench.post(SendOpcode::kLocalInvalidate, 0, 2), 0);
  SendRequest bad = bench.request(SendOpcode::kSend, 16, 3);
  Sge nowhere = bad.sges[0];
  nowhere.lkey ^= 1;
  bad.sges = {&nowhere, 1};
  ASSERT_EQ(bench.qp().post_send(bad), 0);
  EXPECT_EQ(bench.requests().size(), 1U);
  const auto content = pattern(16);
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseOnly, psn(0), content), Drop::kNone);
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kSuccess);
  expect_completion(bench, 3, WcStatus::kLocalProtectionError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

TEST(Requester, AMessageEndsOnAPacketBoundaryWithoutAnEmptyPacket) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 0);
  bench.post(SendOpcode::kSend, kMtu);
  bench.post(SendOpcode::kRdmaWrite, 2 * kMtu);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[0].opcode(), Opcode::kRcSendOnly);
  EXPECT_TRUE(sent[0].payload.empty());
  EXPECT_EQ(sent[1].opcode(), Opcode::kRcSendOnly);
  EXPECT_EQ(sent[2].opcode(), Opcode::kRcWriteFirst);
  EXPECT_EQ(sent[2].packet.reth.length, 2 * kMtu);
  EXPECT_EQ(sent[3].opcode(), Opcode::kRcWriteLast);
}

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

// --- what fails at this end

TEST(Requester, ALocalProtectionErrorInTheMiddleOfAMessageWaitsForThoseBefore) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  SendRequest bad = bench.request(SendOpcode::kSend, 0, 2, 0);
  const std::array<Sge, 2> sges{bench.host().sge(0, kMtu + 10), Sge{4096, 64, 0xbad}};
  bad.sges = sges;
  ASSERT_EQ(bench.qp().post_send(bad), 0);
  bench.post(SendOpcode::kSend, 16, 3);
  EXPECT_EQ(bench.requests().size(), 2U) << "the first, and one packet of the bad one";
  EXPECT_FALSE(bench.sent());
  EXPECT_EQ(bench.qp().state(), QpState::kReadyToSend);
  bench.acknowledge(psn(0));
  expect_completion(bench, 1, WcStatus::kSuccess);
  expect_completion(bench, 2, WcStatus::kLocalProtectionError);
  expect_completion(bench, 3, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

TEST(Requester, AReadIntoMemoryThatMayNotBeWrittenNeverLeaves) {
  ConnectionBench bench;
  bench.bring_up();
  MemoryRegion read_only = bench.host().region_of(bench.host().bytes().data(), 64, 0);
  ASSERT_TRUE(bench.host().memory().insert(read_only));
  const Sge sge{read_only.address, 64, read_only.key.value()};
  SendRequest request = bench.request(SendOpcode::kRdmaRead, 0, 1);
  request.sges = {&sge, 1};
  ASSERT_EQ(bench.qp().post_send(request), 0);
  EXPECT_TRUE(bench.requests().empty());
  const auto completion = bench.sent();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(completion->vendor_error, static_cast<std::uint32_t>(MemoryFault::kNoAccess));
}

TEST(Requester, MemoryThatGoesWhileAReadIsAnsweredIsALocalProtectionError) {
  ConnectionBench bench;
  bench.bring_up();
  MemoryRegion region = bench.host().region_of(bench.host().bytes().data() + 512, 600, kLocalWrite);
  ASSERT_TRUE(bench.host().memory().insert(region));
  const Sge sge{region.address, 600, region.key.value()};
  SendRequest request = bench.request(SendOpcode::kRdmaRead, 0, 1);
  request.sges = {&sge, 1};
  ASSERT_EQ(bench.qp().post_send(request), 0);
  bench.requests();
  const auto content = pattern(kMtu);
  bench.read_response(Opcode::kRcReadResponseFirst, psn(0), content);
  bench.host().memory().remove(region.key);
  bench.read_response(Opcode::kRcReadResponseMiddle, psn(1), content);
  expect_completion(bench, 1, WcStatus::kLocalProtectionError);
}

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
