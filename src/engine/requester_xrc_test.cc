// An XRC send queue pair: a requester as that of RC, whose every request names a shared receive queue.
#include <array>
#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "engine/request_kind.h"
#include "engine/testing/requester_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::kSharedQueue;
using testing::pattern;
using testing::requester::expect_completion;
using testing::requester::kMtu;
using testing::requester::psn;
using wire::NakCode;
using wire::Opcode;
using wire::Syndrome;

TEST(XrcRequester, EveryPacketNamesTheQueueOfItsRequest) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  SendRequest first = bench.request(SendOpcode::kSend, 2 * kMtu + 4, 1);
  first.shared_queue = 0x1234;
  ASSERT_EQ(bench.qp().post_send(first), 0);
  SendRequest second = bench.request(SendOpcode::kRdmaWriteWithImmediate, 8, 2);
  second.shared_queue = 0xff005678;
  ASSERT_EQ(bench.qp().post_send(second), 0);
  const auto sent = bench.requests();
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[0].opcode(), Opcode::kXrcSendFirst);
  EXPECT_EQ(sent[1].opcode(), Opcode::kXrcSendMiddle);
  EXPECT_EQ(sent[2].opcode(), Opcode::kXrcSendLast);
  EXPECT_EQ(sent[3].opcode(), Opcode::kXrcWriteOnlyImm);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(sent[i].packet.xrceth.srqn, 0x1234U);
  EXPECT_EQ(sent[3].packet.xrceth.srqn, 0x005678U) << "24 bits";
  EXPECT_EQ(sent[3].packet.reth.length, 8U);
}

// What leaves for each kind of request, whole.
TEST(XrcRequester, HasEveryOperationOfRc) {
  struct Row {
    SendOpcode posted;
    Opcode sent;
  };
  constexpr std::array kRows{Row{SendOpcode::kSend, Opcode::kXrcSendOnly},
                             Row{SendOpcode::kSendWithImmediate, Opcode::kXrcSendOnlyImm},
                             Row{SendOpcode::kSendWithInvalidate, Opcode::kXrcSendOnlyInvalidate},
                             Row{SendOpcode::kRdmaWrite, Opcode::kXrcWriteOnly},
                             Row{SendOpcode::kRdmaWriteWithImmediate, Opcode::kXrcWriteOnlyImm},
                             Row{SendOpcode::kRdmaRead, Opcode::kXrcReadRequest},
                             Row{SendOpcode::kCompareSwap, Opcode::kXrcCompareSwap},
                             Row{SendOpcode::kFetchAdd, Opcode::kXrcFetchAdd},
                             Row{SendOpcode::kFlush, Opcode::kXrcFlush},
                             Row{SendOpcode::kAtomicWrite, Opcode::kXrcAtomicWrite}};
  for (const Row& row : kRows) {
    ConnectionBench bench(QpType::kXrcSend);
    bench.bring_up();
    EXPECT_TRUE(takes(QpType::kXrcSend, row.posted));
    SendRequest request = bench.request(row.posted, 8);
    request.immediate = 1;
    ASSERT_EQ(bench.qp().post_send(request), 0);
    const auto sent = bench.requests();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].opcode(), row.sent) << wire::row_of(row.sent).name;
    EXPECT_EQ(sent[0].packet.xrceth.srqn, kSharedQueue);
  }
}

TEST(XrcRequester, AnswersComplete) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kRdmaRead, 8, 2);
  bench.post(SendOpcode::kFetchAdd, 8, 3);
  bench.requests();
  EXPECT_EQ(bench.acknowledge(psn(0)), Drop::kNone);
  expect_completion(bench, 1, WcStatus::kSuccess);
  EXPECT_EQ(bench.read_response(Opcode::kRcReadResponseOnly, psn(1), pattern(8)), Drop::kNone);
  expect_completion(bench, 2, WcStatus::kSuccess);
  EXPECT_EQ(bench.atomic_response(psn(2), 77), Drop::kNone);
  expect_completion(bench, 3, WcStatus::kSuccess);
}

TEST(XrcRequester, TakesNoAnswerOfAnotherTransport) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.requests();
  wire::Packet packet = bench.incoming(Opcode::kRcAcknowledge, psn(0));
  packet.bth.opcode = Opcode::kRcAcknowledge;
  packet.aeth = {Syndrome::ack(0x1f), 0};
  EXPECT_EQ(bench.respond(packet), Drop::kOpcodeNotForQp);
  EXPECT_FALSE(bench.sent());
}

TEST(XrcRequester, AQueueThatIsNotThereFailsTheRequest) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  bench.post(SendOpcode::kSend, 16, 2);
  bench.requests();
  bench.answer(Syndrome::nak(NakCode::kInvalidRequest), psn(0));
  expect_completion(bench, 1, WcStatus::kRemoteInvalidRequestError);
  expect_completion(bench, 2, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

TEST(XrcRequester, WaitsWhereTheQueueIsEmpty) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  bench.post(SendOpcode::kSend, 16, 1);
  ASSERT_EQ(bench.requests().size(), 1U);
  bench.answer(Syndrome::rnr_nak(12), psn(0));
  EXPECT_TRUE(bench.requests().empty());
  ASSERT_TRUE(bench.run_timer());
  const auto again = bench.requests();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].packet.xrceth.srqn, kSharedQueue);
}

TEST(XrcRequester, ReceivesNothing) {
  ConnectionBench bench(QpType::kXrcSend);
  bench.bring_up();
  EXPECT_EQ(bench.qp().post_receive(1, {}), EINVAL);
  EXPECT_EQ(bench.receive(bench.incoming(Opcode::kRcSendOnly, 0)), Drop::kOpcodeNotForQp);
}

}  // namespace
}  // namespace verbena::engine
