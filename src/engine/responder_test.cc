#include "engine/responder.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/responder_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::responder::expect_answer;
using testing::responder::kAck;
using testing::responder::kMtu;
using testing::responder::kRnrNak;
using testing::responder::kSequenceNak;
using testing::responder::psn;
using testing::responder::send;
using testing::responder::with_key;
using wire::Opcode;

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

TEST(Responder, WhereRnrNaksAreLostItIsSilentAndTakesWhatComesAgain) {
  ConnectionBench bench(QpType::kRc, 128, 64, nullptr, nullptr, {.rnr_nak_lost = true});
  bench.bring_up();
  const auto content = pattern(8);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kNoReceiveRequest);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), content)), Drop::kOutOfSequence);
  EXPECT_TRUE(bench.responses().empty());
  EXPECT_EQ(bench.events().count(TransportEvent::kRnrNakSent), 0);
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
