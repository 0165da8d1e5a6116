#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "engine/requester.h"
#include "engine/testing/requester_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::requester::expect_completion;
using testing::requester::kMtu;
using testing::requester::psn;
using wire::Opcode;

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

}  // namespace
}  // namespace verbena::engine
