#include "engine/queue_pair.h"

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/workbench.h"

namespace verbena::engine {
namespace {

using testing::bring_to;
using ::testing::HasSubstr;
using testing::Host;
using testing::kQkey;
using testing::move_to;

class QueuePairTest : public ::testing::Test {
 protected:
  void expect_refusal(const Status& status, const std::string& words) {
    ASSERT_FALSE(status) << words;
    EXPECT_EQ(status.error().system_errno, EINVAL) << words;
    EXPECT_THAT(status.error().message, HasSubstr(words));
  }
  SendRequest request(std::uint64_t wr_id, std::uint32_t flags = kSendSignaled) {
    SendRequest made;
    made.wr_id = wr_id;
    made.flags = flags;
    made.sges = {&piece_, 1};
    made.address = &address_;
    made.remote_qpn = 200;
    made.remote_qkey = kQkey;
    return made;
  }
  // The connected types' attributes, all good.
  QpAttributes connected() {
    QpAttributes attributes;
    attributes.port = 1;
    attributes.path_mtu = 3;
    attributes.destination_qpn = 5;
    attributes.address = address_.vector;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
    attributes.min_rnr_timer = 12;
    attributes.timeout = 14;
    attributes.retry_count = attributes.rnr_retry = 7;
    attributes.receive_psn = 0xff123456;
    attributes.send_psn = 0xffabcdef;
    return attributes;
  }
  // Straight up to RTS with exactly what is required.
  Status bring_up(QueuePair& qp, QpAttributes attributes) {
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
      attributes.state = to;
      Status status = qp.modify(attributes, kAttrState | edge_of(qp.type(), qp.state(), to).required, host_.port());
      if (!status) return status;
    }
    return {};
  }

  Host host_{1};
  Host peer_{2};
  AddressHandle address_ = host_.address_of(peer_);
  Sge piece_ = host_.sge(0, 64);
};

TEST_F(QueuePairTest, EveryTypeCanBeBroughtUp) {
  for (const QpType type : kQpTypes) {
    QueuePair qp(host_.config(100, type));
    EXPECT_EQ(qp.state(), QpState::kReset);
    const Status status = bring_up(qp, connected());
    EXPECT_TRUE(status) << name_of(type) << ": " << (status ? "" : status.error().message);
    EXPECT_EQ(qp.state(), QpState::kReadyToSend);
  }
}

TEST_F(QueuePairTest, QueryTellsWhatModifySet) {
  QueuePair qp(host_.config(100, QpType::kRc));
  ASSERT_TRUE(bring_up(qp, connected()));
  const QpAttributes told = qp.query();
  EXPECT_EQ(told.state, QpState::kReadyToSend);
  EXPECT_EQ(told.current_state, QpState::kReadyToSend);
  EXPECT_EQ(told.receive_psn, 0x123456U);
  EXPECT_EQ(told.send_psn, 0xabcdefU);
  EXPECT_EQ(told.address, address_.vector);
  EXPECT_EQ(told.timeout, 14);
  EXPECT_EQ(told.path_mtu, 3);
  EXPECT_EQ(told.max_rd_atomic, 16);
  EXPECT_EQ(told.port, 1);
  EXPECT_EQ(told.capabilities, qp.capabilities());
}

TEST_F(QueuePairTest, ARefusedModifyChangesNothing) {
  QueuePair qp(host_.config(100));
  ASSERT_TRUE(bring_to(qp, QpState::kInit, host_.port()));
  QpAttributes attributes;
  attributes.state = QpState::kReadyToReceive;
  attributes.qkey = 1;
  attributes.pkey_index = 1;
  expect_refusal(qp.modify(attributes, kAttrState | kAttrQkey | kAttrPkeyIndex, host_.port()), "P_Key index 1");
  EXPECT_EQ(qp.state(), QpState::kInit);
  EXPECT_EQ(qp.query().qkey, kQkey);
}

TEST_F(QueuePairTest, SaysWhatIsWrongWithAnAttribute) {
  struct Case {
    AttrMask bit;
    std::function<void(QpAttributes&)> spoil;
    std::string words;
  };
  const std::vector<Case> to_rtr{
      {kAttrPathMtu, [](QpAttributes& a) { a.path_mtu = 0; }, "path_mtu 0"},
      {kAttrPathMtu, [](QpAttributes& a) { a.path_mtu = 6; }, "path_mtu 6"},
      {kAttrPathMtu, [](QpAttributes& a) { a.path_mtu = 4; }, "path MTU is above the 1024 bytes"},
      {kAttrDestinationQpn, [](QpAttributes& a) { a.destination_qpn = 1U << 24; }, "24 bits"},
      {kAttrMaxDestRdAtomic, [](QpAttributes& a) { a.max_dest_rd_atomic = 129; }, "max_dest_rd_atomic 129"},
      {kAttrMinRnrTimer, [](QpAttributes& a) { a.min_rnr_timer = 32; }, "min_rnr_timer 32"},
      {kAttrAddressVector, [](QpAttributes& a) { a.address.is_global = false; }, "GRH is needed"},
      {kAttrAddressVector, [](QpAttributes& a) { a.address.sgid_index = 3; }, "index 3 is empty"},
      {kAttrAddressVector, [](QpAttributes& a) { a.address.destination = {}; }, "zero"},
      {kAttrAccessFlags, [](QpAttributes& a) { a.access = 1U << 15; }, "access flags"},
      {kAttrPkeyIndex, [](QpAttributes& a) { a.pkey_index = 1; }, "P_Key index 1"},
      {kAttrAlternatePath, [](QpAttributes&) {}, "no alternate path"},
  };
  for (const Case& c : to_rtr) {
    QueuePair qp(host_.config(100, QpType::kRc));
    QpAttributes attributes = connected();
    attributes.state = QpState::kInit;
    ASSERT_TRUE(qp.modify(attributes, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, host_.port()));
    attributes.state = QpState::kReadyToReceive;
    c.spoil(attributes);
    const AttrMask required = edge_of(QpType::kRc, QpState::kInit, QpState::kReadyToReceive).required;
    expect_refusal(qp.modify(attributes, kAttrState | required | c.bit, host_.port()), c.words);
  }
  QueuePair qp(host_.config(100));
  QpAttributes attributes;
  attributes.state = QpState::kInit;
  attributes.port = 2;
  expect_refusal(qp.modify(attributes, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrQkey, host_.port()), "port 2");
}

TEST_F(QueuePairTest, SaysWhichStepOrMaskIsWrong) {
  QueuePair qp(host_.config(100));
  expect_refusal(move_to(qp, QpState::kReadyToSend, host_.port()), "UD queue pair from RESET to RTS");
  expect_refusal(move_to(qp, QpState::kError, host_.port()), "from RESET to ERR");
  expect_refusal(move_to(qp, QpState::kInit, host_.port()), "must hold 112");
  expect_refusal(qp.modify({}, kAttrCapabilities, host_.port()), "mask");
}

TEST_F(QueuePairTest, TheCurrentStateMustBeTheOneNamed) {
  QueuePair qp(host_.config(100));
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToReceive, host_.port()));
  QpAttributes attributes;
  attributes.state = QpState::kReadyToSend;
  attributes.current_state = QpState::kReadyToSend;
  expect_refusal(qp.modify(attributes, kAttrState | kAttrCurrentState | kAttrSendPsn, host_.port()), "is in RTR");
  attributes.current_state = QpState::kReadyToReceive;
  EXPECT_TRUE(qp.modify(attributes, kAttrState | kAttrCurrentState | kAttrSendPsn, host_.port()));
}

TEST_F(QueuePairTest, ErrorFlushesBothQueuesInOrder) {
  for (const QpType type : {QpType::kUd, QpType::kUc, QpType::kRc}) {
    QueuePair qp(host_.config(100, type));
    ASSERT_TRUE(bring_up(qp, connected()));
    for (std::uint64_t id = 0; id < 5; ++id) {
      EXPECT_EQ(qp.post_send(request(id, id % 2 == 0 ? kSendSignaled : 0)), 0);
      EXPECT_EQ(qp.post_receive(100 + id, {}), 0);
    }
    ASSERT_TRUE(move_to(qp, QpState::kError, host_.port()));
    for (std::uint64_t id = 0; id < 5; ++id) {
      const auto send = host_.send_completions().poll();
      const auto receive = host_.receive_completions().poll();
      ASSERT_TRUE(send && receive) << id;
      EXPECT_EQ(send->wr_id, id);
      EXPECT_EQ(send->status, WcStatus::kFlushError);
      EXPECT_EQ(send->qp_number, 100U);
      EXPECT_EQ(receive->wr_id, 100 + id);
      EXPECT_EQ(receive->status, WcStatus::kFlushError);
    }
    // What is posted now comes back at once.
    EXPECT_EQ(qp.post_send(request(9, 0)), 0);
    EXPECT_EQ(qp.post_receive(109, {}), 0);
    EXPECT_EQ(host_.send_completions().poll()->wr_id, 9U);
    EXPECT_EQ(host_.receive_completions().poll()->wr_id, 109U);
    EXPECT_FALSE(qp.has_untransmitted());
  }
}

TEST_F(QueuePairTest, ResetForgetsEverythingSilently) {
  QueuePair qp(host_.config(100));
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(qp.post_send(request(1)), 0);
    ASSERT_EQ(qp.post_receive(1, {}), 0);
  }
  ASSERT_TRUE(move_to(qp, QpState::kReset, host_.port()));
  EXPECT_FALSE(host_.send_completions().poll());
  EXPECT_FALSE(host_.receive_completions().poll());
  EXPECT_EQ(qp.query().qkey, 0U);
  qp.give_back_all();
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(qp.post_send(request(2)), 0) << "the queues are empty again";
    EXPECT_EQ(qp.post_receive(2, {}), 0);
  }
  EXPECT_EQ(qp.post_send(request(2)), ENOMEM);
}

TEST_F(QueuePairTest, PostingFollowsTheState) {
  struct Case {
    QpState state;
    int send;
    int receive;
  };
  for (const Case& c : {Case{QpState::kReset, EINVAL, EINVAL}, Case{QpState::kInit, EINVAL, 0},
                        Case{QpState::kReadyToReceive, EINVAL, 0}, Case{QpState::kReadyToSend, 0, 0}}) {
    QueuePair qp(host_.config(100));
    ASSERT_TRUE(c.state == QpState::kReset || bring_to(qp, c.state, host_.port()));
    EXPECT_EQ(qp.post_send(request(1)), c.send) << name_of(c.state);
    EXPECT_EQ(qp.post_receive(1, {}), c.receive) << name_of(c.state);
  }
}

TEST_F(QueuePairTest, ReceivesCannotBePostedBesideASharedQueue) {
  testing::QueueSource shared(4, 1);
  QpConfig config = host_.config(100);
  config.shared_receives = &shared;
  QueuePair qp(config);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  EXPECT_EQ(qp.post_receive(1, {}), EINVAL);
}

TEST_F(QueuePairTest, ErrorWithASharedQueueRaisesLastWqeReachedAndFlushesNothing) {
  testing::QueueSource shared(4, 1);
  ASSERT_EQ(shared.queue().post(1, {}), 0);
  QpConfig config = host_.config(100);
  config.shared_receives = &shared;
  QueuePair qp(config);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  EXPECT_FALSE(qp.poll_event());
  ASSERT_TRUE(move_to(qp, QpState::kError, host_.port()));
  EXPECT_EQ(qp.poll_event(), QpEvent::kLastWqeReached);
  EXPECT_FALSE(qp.poll_event());
  EXPECT_FALSE(host_.receive_completions().poll());
  EXPECT_EQ(shared.queue().size(), 1U);
  ASSERT_TRUE(move_to(qp, QpState::kError, host_.port()));
  EXPECT_FALSE(qp.poll_event()) << "it was there already";
}

TEST_F(QueuePairTest, FailGoesToErrorWithAFatalEvent) {
  QueuePair qp(host_.config(100));
  qp.fail();
  EXPECT_EQ(qp.state(), QpState::kReset);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  ASSERT_EQ(qp.post_send(request(1, 0)), 0);
  qp.fail();
  EXPECT_EQ(qp.state(), QpState::kError);
  EXPECT_EQ(qp.poll_event(), QpEvent::kFatal);
  EXPECT_EQ(host_.send_completions().poll()->status, WcStatus::kFlushError);
  qp.fail();
  EXPECT_FALSE(qp.poll_event());
}

TEST_F(QueuePairTest, LeavesResetNoMoreOnceACompletionQueueOfItWasOverrun) {
  for (const bool of_sends : {true, false}) {
    testing::QueueSink small(1);
    QpConfig config = host_.config(100);
    (of_sends ? config.send_completions : config.receive_completions) = &small;
    QueuePair qp(config);
    ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
    while (!small.overrun()) small.push({}, {});
    qp.fail();
    ASSERT_TRUE(move_to(qp, QpState::kReset, host_.port()));
    QpAttributes attributes;
    attributes.port = 1;
    const Status refused =
        move_to(qp, QpState::kInit, host_.port(), kAttrPkeyIndex | kAttrPort | kAttrQkey, attributes);
    ASSERT_FALSE(refused) << of_sends;
    EXPECT_EQ(refused.error().system_errno, EINVAL);
    EXPECT_NE(refused.error().message.find("overrun"), std::string::npos) << refused.error().message;
    EXPECT_EQ(qp.state(), QpState::kReset);
  }
}

TEST_F(QueuePairTest, GrantsAtLeastWhatWasAskedAndNoMoreThanTheDeviceAllows) {
  for (const std::uint32_t most_inline : {0U, 100U, kMaxInline, 1000U}) {
    for (const std::uint32_t asked_inline : {0U, 1U, 64U, most_inline}) {
      for (const std::uint32_t sges : {0U, 1U, 4U, 32U}) {
        if (asked_inline > most_inline) continue;
        QpConfig config = host_.config(100);
        config.capabilities = {7, 9, sges, sges, asked_inline};
        config.most_inline = most_inline;
        const QueuePair qp(config);
        EXPECT_GE(qp.capabilities().max_inline_data, asked_inline);
        EXPECT_LE(qp.capabilities().max_inline_data, most_inline);
        EXPECT_EQ(qp.capabilities().max_send_wr, 7U);
        EXPECT_EQ(qp.capabilities().max_recv_sge, sges);
      }
    }
  }
}

// For the thread sanitizer: the two sides on two threads, until the receive side takes the queue pair to error.
TEST_F(QueuePairTest, SendSideAndReceiveSideMayBeTwoThreads) {
  constexpr int kRounds = 5'000;
  QueuePair qp(host_.config(100));
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToSend, host_.port()));
  std::thread receiver([&] {
    wire::Packet packet;
    packet.bth.opcode = wire::Opcode::kUdSendOnly;
    packet.deth.qkey = Qkey(kQkey);
    Sge sge = host_.sge(4096, 64);
    for (int i = 0; i <= kRounds; ++i) {
      if (i == kRounds) sge.lkey ^= 1;
      ASSERT_EQ(qp.post_receive(1, {&sge, 1}), 0);
      ASSERT_EQ(qp.on_packet(packet, {}, 24, {}), i == kRounds ? Drop::kReceiveProtection : Drop::kNone);
      ASSERT_TRUE(host_.receive_completions().poll());
    }
  });
  Transmit packet;
  std::uint64_t completed = 0;
  std::uint64_t posted = 0;
  while (posted < kRounds || qp.state() != QpState::kError) {
    ASSERT_EQ(qp.post_send(request(++posted)), 0);
    if (qp.poll_transmit({}, packet)) qp.on_transmitted(1);
    while (const auto completion = host_.send_completions().poll()) EXPECT_EQ(completion->wr_id, ++completed);
  }
  receiver.join();
  qp.settle_send();
  while (const auto completion = host_.send_completions().poll()) EXPECT_EQ(completion->wr_id, ++completed);
  EXPECT_EQ(completed, posted);
}

TEST_F(QueuePairTest, AConnectionMakesPacketsOfItsRequests) {
  QueuePair qp(host_.config(100, QpType::kRc));
  ASSERT_TRUE(bring_up(qp, connected()));
  SendRequest write = request(1);
  write.opcode = SendOpcode::kRdmaWrite;
  EXPECT_EQ(qp.post_send(write), 0);
  write.opcode = static_cast<SendOpcode>(12);
  EXPECT_EQ(qp.post_send(write), EINVAL);
  Transmit packet;
  ASSERT_TRUE(qp.poll_transmit({}, packet));
  const auto bytes = testing::flatten(packet);
  wire::Packet decoded;
  ASSERT_EQ(wire::decode_packet(bytes, false, decoded), Drop::kNone);
  EXPECT_EQ(decoded.bth.opcode, wire::Opcode::kRcWriteOnly);
  EXPECT_EQ(decoded.bth.psn, Psn(0xabcdef));
  EXPECT_TRUE(decoded.bth.ack_request);
  EXPECT_EQ(decoded.reth.length, 64U);
  qp.on_transmitted(1);
  EXPECT_FALSE(qp.poll_transmit({}, packet));
  EXPECT_FALSE(qp.has_untransmitted()) << "it waits for the other end, not for the transport";
}

}  // namespace
}  // namespace verbena::engine
