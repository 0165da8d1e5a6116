#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/workbench.h"
#include "wire/source_port.h"

namespace verbena::engine {
namespace {

using testing::bring_to;
using testing::flatten;
using testing::Host;
using testing::kQkey;
using testing::move_to;

class UdSendTest : public ::testing::Test {
 protected:
  UdSendTest() {
    for (std::size_t i = 0; i < host_.bytes().size(); ++i) host_.bytes()[i] = static_cast<std::byte>(i * 7 + i / 256);
    EXPECT_TRUE(bring_to(qp_, QpState::kReadyToSend, host_.port(), kQkey, 0xfffffe));
  }

  SendRequest request(std::uint64_t wr_id, std::span<const Sge> sges, std::uint32_t flags = kSendSignaled) {
    SendRequest made;
    made.wr_id = wr_id;
    made.flags = flags;
    made.sges = sges;
    made.address = &address_;
    made.remote_qpn = 0xabcdef;
    made.remote_qkey = 0x55;
    return made;
  }
  // Posts one of `length` bytes.
  int post(std::uint64_t wr_id, std::uint32_t length = 8, std::uint32_t flags = kSendSignaled) {
    const Sge sge = host_.sge(0, length);
    return qp_.post_send(request(wr_id, {&sge, 1}, flags));
  }
  bool poll() { return qp_.poll_transmit(now_, packet_); }
  wire::Packet decoded() {
    bytes_ = flatten(packet_);
    EXPECT_EQ(bytes_.size(), packet_.size);
    EXPECT_EQ(bytes_.size() % 4, 0U);
    wire::Packet packet;
    EXPECT_EQ(wire::decode_packet(bytes_, false, packet), Drop::kNone);
    return packet;
  }
  void expect_completion(std::uint64_t wr_id, WcStatus status) {
    const auto completion = host_.send_completions().poll();
    ASSERT_TRUE(completion) << wr_id;
    EXPECT_EQ(completion->wr_id, wr_id);
    EXPECT_EQ(completion->status, status) << wr_id;
    EXPECT_EQ(completion->qp_number, 100U);
  }
  void expect_no_completion() { EXPECT_FALSE(host_.send_completions().poll()); }
  // The request posted last fails with `status`, the one behind it is flushed, and RTS is reached again.
  void expect_send_queue_error(WcStatus status) {
    ASSERT_EQ(post(77, 8, 0), 0);
    EXPECT_FALSE(poll());
    EXPECT_EQ(qp_.state(), QpState::kSendQueueError);
    expect_completion(1, status);
    expect_completion(77, WcStatus::kFlushError);
    expect_no_completion();
    ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
    ASSERT_EQ(post(2), 0);
    EXPECT_TRUE(poll());
    qp_.on_transmitted(1);
    expect_completion(2, WcStatus::kSuccess);
  }

  Host host_{1};
  Host peer_{2};
  AddressHandle address_ = host_.address_of(peer_);
  QueuePair qp_{host_.config(100)};
  Instant now_{1'000'000};
  Transmit packet_;
  std::vector<std::byte> bytes_;
};

TEST_F(UdSendTest, APacketSaysWhatTheRequestSaid) {
  qp_.set_source_port(0xc123);
  const std::array sges{host_.sge(100, 5), host_.sge(7, 0), host_.sge(300, 6)};
  ASSERT_EQ(qp_.post_send(request(1, sges, kSendSolicited)), 0);
  ASSERT_TRUE(poll());
  EXPECT_EQ(packet_.source_qpn, Qpn(100));
  EXPECT_EQ(packet_.destination_qpn, Qpn(0xabcdef));
  EXPECT_EQ(packet_.payload_size, 11U);
  EXPECT_EQ(packet_.envelope->destination, peer_.gid(1));
  EXPECT_EQ(packet_.envelope->source_port, 0xc123);
  const wire::Packet packet = decoded();
  EXPECT_EQ(packet.bth.opcode, wire::Opcode::kUdSendOnly);
  EXPECT_TRUE(packet.bth.solicited);
  EXPECT_EQ(packet.bth.pad_count, 1);
  EXPECT_EQ(packet.bth.pkey, Pkey(0xffff));
  EXPECT_EQ(packet.bth.destination_qpn, Qpn(0xabcdef));
  EXPECT_EQ(packet.bth.psn, Psn(0xfffffe));
  EXPECT_EQ(packet.deth.qkey, Qkey(0x55));
  EXPECT_EQ(packet.deth.source_qpn, Qpn(100));
  ASSERT_EQ(packet.payload.size(), 11U);
  EXPECT_TRUE(std::equal(packet.payload.begin(), packet.payload.begin() + 5, &host_.bytes()[100]));
  EXPECT_TRUE(std::equal(packet.payload.begin() + 5, packet.payload.end(), &host_.bytes()[300]));
  EXPECT_FALSE(poll());
}

TEST_F(UdSendTest, ImmediateDataGoesAsItIs) {
  SendRequest made = request(1, {});
  made.opcode = SendOpcode::kSendWithImmediate;
  made.immediate = 0x01020304;
  ASSERT_EQ(qp_.post_send(made), 0);
  ASSERT_TRUE(poll());
  const wire::Packet packet = decoded();
  EXPECT_EQ(packet.bth.opcode, wire::Opcode::kUdSendOnlyImm);
  EXPECT_EQ(packet.imm_dt.network_order, 0x01020304U);
  EXPECT_TRUE(packet.payload.empty());
  EXPECT_EQ(packet_.part_count, 1U);
}

TEST_F(UdSendTest, PsnGrowsByOneAPacketAndWraps) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(post(1), 0);
  for (const std::uint32_t psn : {0xfffffeU, 0xffffffU, 0U, 1U}) {
    ASSERT_TRUE(poll());
    EXPECT_EQ(decoded().bth.psn, Psn(psn));
  }
}

TEST_F(UdSendTest, HighBitOfTheRemoteQkeyMeansTheOwnOne) {
  SendRequest made = request(1, {});
  made.remote_qkey = 0x80000055;
  ASSERT_EQ(qp_.post_send(made), 0);
  ASSERT_TRUE(poll());
  EXPECT_EQ(decoded().deth.qkey, Qkey(kQkey));
}

TEST_F(UdSendTest, FlowLabelBeatsTheQueuePairsSourcePort) {
  qp_.set_source_port(0xc123);
  AddressVector vector = address_.vector;
  vector.flow_label = 0x12345;
  const AddressHandle labelled = *validate(vector, host_.port(), &host_.domain());
  SendRequest made = request(1, {});
  made.address = &labelled;
  ASSERT_EQ(qp_.post_send(made), 0);
  ASSERT_TRUE(poll());
  EXPECT_EQ(packet_.envelope->source_port, wire::source_port_of_flow_label(0x12345));
}

TEST_F(UdSendTest, InlineDataIsCopiedWhenPostedAndNeedsNoKey) {
  std::vector<std::byte> own(10, std::byte{0x5a});
  const std::array sges{Sge{reinterpret_cast<std::uint64_t>(own.data()), 4, 0},
                        Sge{reinterpret_cast<std::uint64_t>(own.data() + 4), 6, 0xbad}};
  ASSERT_EQ(qp_.post_send(request(1, sges, kSendInline)), 0);
  std::fill(own.begin(), own.end(), std::byte{0});
  ASSERT_TRUE(poll());
  const wire::Packet packet = decoded();
  EXPECT_EQ(std::vector(packet.payload.begin(), packet.payload.end()), std::vector(10, std::byte{0x5a}));
}

TEST_F(UdSendTest, InlineRoomIsUsableToTheLastByte) {
  const std::uint32_t room = qp_.capabilities().max_inline_data;
  EXPECT_EQ(post(1, room, kSendInline), 0);
  EXPECT_EQ(post(2, room + 1, kSendInline), EINVAL);
  EXPECT_EQ(post(3, room, kSendInline), 0);
  ASSERT_TRUE(poll());
  EXPECT_EQ(decoded().payload.size(), room);
}

TEST_F(UdSendTest, TheAddressHandleMayGoOnceThePostIsMade) {
  {
    AddressHandle brief = address_;
    SendRequest made = request(1, {});
    made.address = &brief;
    ASSERT_EQ(qp_.post_send(made), 0);
    brief = {};
  }
  ASSERT_TRUE(poll());
  EXPECT_EQ(packet_.envelope->destination, peer_.gid(1));
}

TEST_F(UdSendTest, RefusesAtThePostWhatCanNeverBe) {
  const std::array<Sge, 5> many{};
  EXPECT_EQ(qp_.post_send(request(1, many)), EINVAL);
  SendRequest made = request(1, {});
  made.address = nullptr;
  EXPECT_EQ(qp_.post_send(made), EINVAL);
  for (const int opcode : {7, 8, 9, 10, 11, 12, 13, 14, 16, 255}) {
    made = request(1, {});
    made.opcode = static_cast<SendOpcode>(opcode);
    EXPECT_EQ(qp_.post_send(made), EINVAL) << opcode;
  }
  EXPECT_FALSE(poll());
  expect_no_completion();
}

TEST_F(UdSendTest, RefusesFlagsThatVerbsDoesNotDefineOrTheDeviceDoesNotOffer) {
  EXPECT_EQ(post(1, 8, kSendSignaled | kSendFence | kSendSolicited | kSendInline), 0);
  for (std::uint32_t bit = 4; bit < 32; ++bit) {
    EXPECT_EQ(post(2, 8, kSendSignaled | 1U << bit), EINVAL) << "bit " << bit;  // bit 4 is IBV_SEND_IP_CSUM
    EXPECT_EQ(qp_.check_send(request(2, {}, 1U << bit)), EINVAL) << "bit " << bit;
  }
  EXPECT_TRUE(poll());
  EXPECT_FALSE(poll());
}

TEST_F(UdSendTest, AFullQueueTakesNoMoreUntilACompletionIsPolled) {
  for (std::uint64_t id = 0; id < 16; ++id) ASSERT_EQ(post(id), 0);
  EXPECT_EQ(post(16), ENOMEM);
  ASSERT_TRUE(poll());
  EXPECT_EQ(post(16), ENOMEM) << "being sent is not being complete";
  qp_.on_transmitted(1);
  EXPECT_EQ(post(16), ENOMEM) << "being complete is not being polled";
  expect_completion(0, WcStatus::kSuccess);
  EXPECT_EQ(post(16), 0);
  EXPECT_EQ(post(17), ENOMEM);
}

TEST_F(UdSendTest, AnUnsignaledSendKeepsItsPlaceUntilALaterCompletionIsPolled) {
  for (std::uint64_t id = 0; id < 16; ++id) ASSERT_EQ(post(id, 8, id == 9 ? kSendSignaled : 0), 0);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(poll());
  qp_.on_transmitted(16);
  EXPECT_EQ(post(16, 8, 0), ENOMEM);
  expect_completion(9, WcStatus::kSuccess);
  for (std::uint64_t id = 0; id < 10; ++id) EXPECT_EQ(post(20 + id, 8, 0), 0);
  EXPECT_EQ(post(30, 8, 0), ENOMEM);
}

TEST_F(UdSendTest, CompletesInOrderAndOnlyWhatIsSignaled) {
  for (std::uint64_t id = 0; id < 6; ++id) ASSERT_EQ(post(id, 8, id % 2 == 0 ? kSendSignaled : 0), 0);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(poll());
  expect_no_completion();
  qp_.on_transmitted(3);
  expect_completion(0, WcStatus::kSuccess);
  expect_completion(2, WcStatus::kSuccess);
  expect_no_completion();
  qp_.on_transmitted(100);
  expect_completion(4, WcStatus::kSuccess);
  expect_no_completion();
}

TEST_F(UdSendTest, SignalAllSignalsAll) {
  QpConfig config = host_.config(100);
  config.signal_all = true;
  QueuePair qp(config);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  ASSERT_EQ(qp.post_send(request(5, {}, 0)), 0);
  ASSERT_TRUE(qp.poll_transmit(now_, packet_));
  qp.on_transmitted(1);
  expect_completion(5, WcStatus::kSuccess);
}

TEST_F(UdSendTest, WhatATransportCouldNotTakeIsYieldedAgain) {
  for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(post(id), 0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(poll());
  qp_.on_transmitted(1);
  qp_.rewind_transmit();
  expect_completion(0, WcStatus::kSuccess);
  for (std::uint32_t psn = 1; psn < 5; ++psn) {
    ASSERT_TRUE(poll());
    EXPECT_EQ(decoded().bth.psn, Psn(0xfffffe) + psn);
  }
  qp_.on_transmitted(4);
  for (std::uint64_t id = 1; id < 5; ++id) expect_completion(id, WcStatus::kSuccess);
}

TEST_F(UdSendTest, OperationsOfOtherServicesFailWhenTheirTurnComes) {
  for (const SendOpcode opcode : {SendOpcode::kRdmaWrite, SendOpcode::kRdmaWriteWithImmediate, SendOpcode::kRdmaRead,
                                  SendOpcode::kCompareSwap, SendOpcode::kFetchAdd, SendOpcode::kAtomicWrite}) {
    SendRequest made = request(1, {}, 0);
    made.opcode = opcode;
    made.address = nullptr;  // verbs keeps something else in its place
    ASSERT_EQ(qp_.post_send(made), 0);
    expect_send_queue_error(WcStatus::kLocalQpOperationError);
  }
}

TEST_F(UdSendTest, AnAddressHandleOfAnotherDomainFails) {
  ProtectionDomain other(2);
  const AddressHandle foreign = *validate(address_.vector, host_.port(), &other);
  SendRequest made = request(1, {}, 0);
  made.address = &foreign;
  ASSERT_EQ(qp_.post_send(made), 0);
  expect_send_queue_error(WcStatus::kLocalQpOperationError);
}

TEST_F(UdSendTest, AnAddressHandleOfAnotherPortFails) {
  PortView second = host_.port();
  second.number = second.count = 2;
  AddressVector vector = address_.vector;
  vector.port = 2;
  const auto elsewhere = validate(vector, second, &host_.domain());
  ASSERT_TRUE(elsewhere) << elsewhere.error().message;
  SendRequest made = request(1, {}, 0);
  made.address = &*elsewhere;
  ASSERT_EQ(qp_.post_send(made), 0);
  expect_send_queue_error(WcStatus::kLocalQpOperationError);
}

TEST_F(UdSendTest, ThePortMtuIsTheLongestMessage) {
  ASSERT_EQ(post(0, 1024, 0), 0);
  EXPECT_TRUE(poll());
  qp_.on_transmitted(1);
  ASSERT_EQ(post(1, 1025, 0), 0);
  expect_send_queue_error(WcStatus::kLocalLengthError);
  const std::array huge{Sge{0, UINT32_MAX, 0}, Sge{0, 64, 0}};
  ASSERT_EQ(qp_.post_send(request(1, huge, 0)), 0);
  expect_send_queue_error(WcStatus::kLocalLengthError);
}

TEST_F(UdSendTest, BadMemoryFails) {
  ProtectionDomain other(2);
  MemoryRegion foreign = host_.region_of(host_.bytes().data(), 64, 0);
  foreign.domain = &other;
  ASSERT_TRUE(host_.memory().insert(foreign));
  Sge elsewhere = host_.sge(0, 8);
  elsewhere.lkey = foreign.key.value();
  Sge unknown = host_.sge(0, 8);
  unknown.lkey ^= 1;
  const Sge beyond = host_.sge(Host::kMemory - 4, 8);
  for (const auto& [bad, fault] :
       {std::pair{elsewhere, MemoryFault::kOtherDomain}, std::pair{unknown, MemoryFault::kUnknownKey},
        std::pair{beyond, MemoryFault::kOutOfBounds}}) {
    const std::array sges{host_.sge(0, 8), bad};
    ASSERT_EQ(qp_.post_send(request(1, sges, 0)), 0);
    EXPECT_FALSE(poll());
    const auto completion = host_.send_completions().poll();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->status, WcStatus::kLocalProtectionError);
    EXPECT_EQ(completion->vendor_error, static_cast<std::uint32_t>(fault));
    ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
  }
}

TEST_F(UdSendTest, AFailureWaitsForThoseBeforeIt) {
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1, 2000, 0), 0);
  ASSERT_EQ(post(2, 8, 0), 0);
  ASSERT_TRUE(poll());
  EXPECT_FALSE(poll());
  EXPECT_EQ(qp_.state(), QpState::kReadyToSend);
  expect_no_completion();
  EXPECT_FALSE(poll());
  qp_.on_transmitted(1);
  EXPECT_EQ(qp_.state(), QpState::kSendQueueError);
  expect_completion(0, WcStatus::kSuccess);
  expect_completion(1, WcStatus::kLocalLengthError);
  expect_completion(2, WcStatus::kFlushError);
  expect_no_completion();
}

TEST_F(UdSendTest, AFailureKeepsItsStatusWhenTheQueuePairIsTakenToError) {
  ASSERT_EQ(post(0, 8, 0), 0);
  ASSERT_EQ(post(1, 2000, 0), 0);
  ASSERT_EQ(post(2, 8, 0), 0);
  ASSERT_TRUE(poll());
  EXPECT_FALSE(poll());
  ASSERT_TRUE(move_to(qp_, QpState::kError, host_.port()));
  expect_completion(0, WcStatus::kFlushError);
  expect_completion(1, WcStatus::kLocalLengthError);
  expect_completion(2, WcStatus::kFlushError);
  qp_.on_transmitted(1);
  expect_no_completion();
}

TEST_F(UdSendTest, AFailureBehindARewindHasItsTurnAgain) {
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1, 2000, 0), 0);
  ASSERT_TRUE(poll());
  EXPECT_FALSE(poll());
  qp_.rewind_transmit();
  EXPECT_TRUE(qp_.has_untransmitted());
  ASSERT_TRUE(poll());
  qp_.on_transmitted(1);
  expect_completion(0, WcStatus::kSuccess);
  EXPECT_FALSE(poll());
  expect_completion(1, WcStatus::kLocalLengthError);
}

TEST_F(UdSendTest, InSendQueueErrorPostsComeBackFlushedAndReceivesGoOn) {
  ASSERT_EQ(post(0, 2000, 0), 0);
  EXPECT_FALSE(poll());
  expect_completion(0, WcStatus::kLocalLengthError);
  ASSERT_EQ(post(1, 8, 0), 0);
  expect_completion(1, WcStatus::kFlushError);
  EXPECT_EQ(qp_.post_receive(1, {}), 0);
  EXPECT_FALSE(host_.receive_completions().poll());
}

TEST_F(UdSendTest, DrainedMeansNothingNewIsBegunAndIsToldOnce) {
  QpAttributes attributes;
  attributes.sqd_async_notify = true;
  ASSERT_EQ(post(0), 0);
  ASSERT_EQ(post(1), 0);
  ASSERT_TRUE(poll());
  ASSERT_TRUE(move_to(qp_, QpState::kSendQueueDrained, host_.port(), kAttrSqdAsyncNotify, attributes));
  EXPECT_TRUE(qp_.query().send_queue_draining);
  EXPECT_FALSE(move_to(qp_, QpState::kReadyToSend, host_.port())) << "still draining";
  EXPECT_FALSE(qp_.poll_event());
  EXPECT_FALSE(poll());
  qp_.on_transmitted(1);
  EXPECT_EQ(qp_.poll_event(), QpEvent::kSendQueueDrained);
  EXPECT_FALSE(qp_.query().send_queue_draining);
  expect_completion(0, WcStatus::kSuccess);
  EXPECT_EQ(post(2), 0) << "may be posted, and waits";
  EXPECT_FALSE(poll());
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
  EXPECT_TRUE(poll());
  EXPECT_TRUE(poll());
  EXPECT_FALSE(qp_.poll_event());
}

TEST_F(UdSendTest, AnEmptyQueueIsDrainedAtOnce) {
  QpAttributes attributes;
  attributes.sqd_async_notify = true;
  ASSERT_TRUE(move_to(qp_, QpState::kSendQueueDrained, host_.port(), kAttrSqdAsyncNotify, attributes));
  EXPECT_EQ(qp_.poll_event(), QpEvent::kSendQueueDrained);
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
  ASSERT_TRUE(move_to(qp_, QpState::kSendQueueDrained, host_.port()));
  EXPECT_FALSE(qp_.poll_event()) << "not asked for";
}

TEST_F(UdSendTest, APacedAddressHandleSetsTheTimeOfTheNextPacket) {
  AddressVector vector = address_.vector;
  vector.static_rate = 2;  // 2.5 Gbit/s: 1020 + 20 bytes take 3328 ns
  const AddressHandle paced = *validate(vector, host_.port(), &host_.domain());
  const Sge sge = host_.sge(0, 1020);
  SendRequest made = request(1, {&sge, 1});
  made.address = &paced;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(qp_.post_send(made), 0);
  int sent = 0;
  const Instant begin = now_;
  for (; sent < 16; ++sent, qp_.on_transmitted(1)) {
    if (poll()) continue;
    const auto next = qp_.next_departure();
    ASSERT_TRUE(next);
    ASSERT_GT(*next, now_);
    now_ = *next;
    ASSERT_TRUE(poll());
  }
  EXPECT_NEAR(static_cast<double>((now_ - begin).count()), 15 * 3328.0, 20'000 + 3328);
  EXPECT_GT((now_ - begin).count(), 15 * 3328 - 20'000 - 3328);
  expect_completion(1, WcStatus::kSuccess);
  ASSERT_EQ(post(1), 0);
  EXPECT_FALSE(qp_.next_departure()) << "another address handle has no pace";
  EXPECT_TRUE(poll());
}

TEST_F(UdSendTest, ARewoundPacketIsNotPaidForTwice) {
  AddressVector vector = address_.vector;
  vector.static_rate = 2;
  const AddressHandle paced = *validate(vector, host_.port(), &host_.domain());
  const Sge sge = host_.sge(0, 1024);
  SendRequest made = request(1, {&sge, 1}, 0);
  made.address = &paced;
  ASSERT_EQ(qp_.post_send(made), 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(poll());
    qp_.rewind_transmit();
  }
}

}  // namespace
}  // namespace verbena::engine
