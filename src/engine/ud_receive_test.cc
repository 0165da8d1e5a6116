#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/workbench.h"

namespace verbena::engine {
namespace {

using testing::bring_to;
using testing::deliver;
using testing::Host;
using testing::kQkey;
using testing::move_to;

class UdReceiveTest : public ::testing::Test {
 protected:
  UdReceiveTest() { EXPECT_TRUE(bring_to(qp_, QpState::kReadyToReceive, host_.port())); }

  wire::Packet good() {
    wire::Packet packet;
    packet.bth.opcode = wire::Opcode::kUdSendOnly;
    packet.bth.destination_qpn = Qpn(100);
    packet.deth.qkey = Qkey(kQkey);
    packet.deth.source_qpn = Qpn(0x654321);
    packet.payload = payload_;
    return packet;
  }
  Drop receive(const wire::Packet& packet) { return receive(qp_, packet); }
  Drop receive(QueuePair& qp, const wire::Packet& packet) {
    std::vector<std::byte> bytes(wire::kMaxHeaderSize);
    bytes.resize(wire::encode_headers(packet, bytes));
    bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
    bytes.resize(bytes.size() + wire::pad_count(packet.payload.size()));
    size_ = bytes.size() + wire::kIcrcSize;
    return deliver(qp, bytes, envelope_);
  }
  void post(std::uint64_t wr_id, std::uint32_t length) {
    const Sge sge = host_.sge(0, length);
    ASSERT_EQ(qp_.post_receive(wr_id, {&sge, 1}), 0);
  }
  std::vector<std::byte> grh() {
    std::vector<std::byte> bytes(wire::kGrhSize);
    wire::write_grh(envelope_, size_, std::span(bytes).first<wire::kGrhSize>());
    return bytes;
  }
  // As if the pieces were one.
  std::vector<std::byte> expected() {
    std::vector<std::byte> bytes = grh();
    bytes.insert(bytes.end(), payload_.begin(), payload_.end());
    return bytes;
  }
  std::vector<std::byte> received(std::span<const Sge> sges, std::size_t size) {
    std::vector<std::byte> bytes;
    for (const Sge& sge : sges) {
      const auto* at = reinterpret_cast<const std::byte*>(sge.address);
      bytes.insert(bytes.end(), at, at + sge.length);
    }
    bytes.resize(size);
    return bytes;
  }

  Host host_{1};
  Host peer_{2};
  QueuePair qp_{host_.config(100)};
  std::vector<std::byte> payload_ = std::vector<std::byte>(50, std::byte{0x42});
  Envelope envelope_{peer_.gid(1), host_.gid(1), 0xc000, 0x68, 63};
  std::size_t size_ = 0;
};

TEST_F(UdReceiveTest, DeliversHeaderPayloadAndCompletion) {
  post(7, 1000);
  wire::Packet packet = good();
  packet.bth.opcode = wire::Opcode::kUdSendOnlyImm;
  packet.imm_dt.network_order = 0xa1b2c3d4;
  packet.bth.solicited = true;
  EXPECT_EQ(receive(packet), Drop::kNone);
  const auto completion = host_.receive_completions().poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 7U);
  EXPECT_EQ(completion->status, WcStatus::kSuccess);
  EXPECT_EQ(completion->opcode, WcOpcode::kReceive);
  EXPECT_EQ(completion->byte_length, 90U);
  EXPECT_EQ(completion->qp_number, 100U);
  EXPECT_EQ(completion->source_qp, 0x654321U);
  EXPECT_EQ(completion->flags, kWcGrh | kWcWithImmediate);
  EXPECT_EQ(completion->immediate, 0xa1b2c3d4U);
  EXPECT_TRUE(completion->solicited);
  const Sge sge = host_.sge(0, 1000);
  EXPECT_EQ(received({&sge, 1}, 90), expected());
  EXPECT_EQ(host_.bytes()[21], std::byte{0x68}) << "the traffic class stands in the IPv4 header";
  EXPECT_EQ(host_.bytes()[28], std::byte{63});
  EXPECT_EQ(host_.bytes()[90], std::byte{0}) << "nothing is written beyond";
}

TEST_F(UdReceiveTest, WithoutImmediateNoFlagSaysSo) {
  post(7, 90);
  EXPECT_EQ(receive(good()), Drop::kNone);
  const auto completion = host_.receive_completions().poll();
  EXPECT_EQ(completion->flags, kWcGrh);
  EXPECT_FALSE(completion->solicited);
}

TEST_F(UdReceiveTest, AnIpv6PacketBringsItsHeader) {
  envelope_.source = peer_.gid(2);
  envelope_.destination = host_.gid(2);
  post(7, 90);
  EXPECT_EQ(receive(good()), Drop::kNone);
  EXPECT_EQ(host_.bytes()[0] & std::byte{0xf0}, std::byte{0x60});
  const Sge sge = host_.sge(0, 90);
  EXPECT_EQ(received({&sge, 1}, 90), expected());
}

TEST_F(UdReceiveTest, ScattersOverPiecesCutAnywhere) {
  for (std::uint32_t first = 0; first <= 90; first += 3) {
    for (std::uint32_t second = 0; first + second <= 90; second += 7) {
      std::fill(host_.bytes().begin(), host_.bytes().end(), std::byte{0xee});
      const std::array sges{host_.sge(1000, first), host_.sge(2000, second), host_.sge(0, 0),
                            host_.sge(3000, 90 - first - second)};
      ASSERT_EQ(qp_.post_receive(1, sges), 0);
      ASSERT_EQ(receive(good()), Drop::kNone);
      ASSERT_EQ(received(sges, 90), expected()) << first << " + " << second;
      EXPECT_EQ(host_.bytes()[1000 + first], std::byte{0xee});
      EXPECT_EQ(host_.bytes()[2000 + second], std::byte{0xee});
      ASSERT_TRUE(host_.receive_completions().poll());
    }
  }
}

TEST_F(UdReceiveTest, QuirksAreThoseThatWereAskedFor) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const ReceiveQuirks quirks{
        .grh_checksum_zero = (bits & 1) != 0, .grh_dirty = (bits & 2) != 0, .wc_sl_unfilled = (bits & 4) != 0};
    QpConfig config = host_.config(100);
    config.quirks = quirks;
    QueuePair odd(config);
    ASSERT_TRUE(bring_to(odd, QpState::kReadyToReceive, host_.port()));
    std::fill(host_.bytes().begin(), host_.bytes().end(), std::byte{0xee});
    const std::array sges{host_.sge(0, 13), host_.sge(1000, 77)};  // cut within the first 20 bytes
    ASSERT_EQ(odd.post_receive(1, sges), 0);
    ASSERT_EQ(receive(odd, good()), Drop::kNone);
    std::vector<std::byte> wanted = expected();
    if (quirks.grh_dirty) std::fill_n(wanted.begin(), 20, std::byte{0xee});
    if (quirks.grh_checksum_zero) wanted[30] = wanted[31] = std::byte{0};
    EXPECT_EQ(received(sges, 90), wanted) << bits;
    const auto completion = host_.receive_completions().poll();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->service_level, quirks.wc_sl_unfilled ? 0 : kHeaderIsIpv4);
    EXPECT_EQ(completion->byte_length, 90U);
  }
}

TEST_F(UdReceiveTest, AnEmptyMessageIsTheHeaderAlone) {
  payload_.clear();
  post(7, 40);
  EXPECT_EQ(receive(good()), Drop::kNone);
  EXPECT_EQ(host_.receive_completions().poll()->byte_length, 40U);
}

TEST_F(UdReceiveTest, WhatFailsACheckLeavesNoTrace) {
  struct Case {
    Drop drop;
    std::function<void(wire::Packet&)> spoil;
  };
  post(7, 90);
  const std::vector<std::byte> long_payload(1025);
  const std::vector<Case> cases{
      {Drop::kQkeyMismatch, [](wire::Packet& p) { p.deth.qkey = Qkey(kQkey ^ 1); }},
      {Drop::kQkeyMismatch, [](wire::Packet& p) { p.deth.qkey = Qkey(kQkey | 0x80000000); }},
      {Drop::kPkeyMismatch, [](wire::Packet& p) { p.bth.pkey = Pkey(0xfffe); }},
      {Drop::kPkeyMismatch, [](wire::Packet& p) { p.bth.pkey = Pkey(0); }},
      {Drop::kOpcodeNotForQp, [](wire::Packet& p) { p.bth.opcode = wire::Opcode::kRcSendOnly; }},
      {Drop::kOpcodeNotForQp, [](wire::Packet& p) { p.bth.opcode = wire::Opcode::kUcSendOnly; }},
      {Drop::kPayloadTooLong, [&](wire::Packet& p) { p.payload = long_payload; }},
  };
  for (const Case& c : cases) {
    wire::Packet packet = good();
    c.spoil(packet);
    EXPECT_EQ(receive(packet), c.drop);
  }
  EXPECT_FALSE(host_.receive_completions().poll());
  wire::Packet limited = good();
  limited.bth.pkey = Pkey(0x7fff);  // a limited member may talk to a full one
  EXPECT_EQ(receive(limited), Drop::kNone);
}

TEST_F(UdReceiveTest, OnlyCertainStatesReceive) {
  struct Case {
    QpState state;
    Drop drop;
  };
  for (const Case& c : {Case{QpState::kInit, Drop::kBadQpState}, Case{QpState::kReadyToReceive, Drop::kNone},
                        Case{QpState::kReadyToSend, Drop::kNone}}) {
    QueuePair qp(host_.config(100));
    ASSERT_TRUE(bring_to(qp, c.state, host_.port()));
    const Sge sge = host_.sge(0, 90);
    ASSERT_EQ(qp.post_receive(1, {&sge, 1}), 0);
    EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), c.drop);
  }
  QueuePair fresh(host_.config(100));
  EXPECT_EQ(fresh.on_packet(good(), envelope_, 100, {}), Drop::kBadQpState);
  ASSERT_TRUE(bring_to(fresh, QpState::kReadyToSend, host_.port()));
  const Sge sge = host_.sge(0, 90);
  ASSERT_EQ(fresh.post_receive(1, {&sge, 1}), 0);
  ASSERT_TRUE(move_to(fresh, QpState::kSendQueueDrained, host_.port()));
  EXPECT_EQ(fresh.on_packet(good(), envelope_, 100, {}), Drop::kNone);
  ASSERT_TRUE(move_to(fresh, QpState::kError, host_.port()));
  EXPECT_EQ(fresh.on_packet(good(), envelope_, 100, {}), Drop::kBadQpState);
}

TEST_F(UdReceiveTest, SendQueueErrorStillReceives) {
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port(), kAttrSendPsn));
  SendRequest bad;
  bad.opcode = SendOpcode::kRdmaRead;
  ASSERT_EQ(qp_.post_send(bad), 0);
  Transmit packet;
  EXPECT_FALSE(qp_.poll_transmit({}, packet));
  ASSERT_EQ(qp_.state(), QpState::kSendQueueError);
  post(1, 90);
  EXPECT_EQ(receive(good()), Drop::kNone);
}

TEST_F(UdReceiveTest, QueuePairsOfOtherTypesTakeNoDatagram) {
  QpAttributes attributes;
  attributes.port = 1;
  attributes.path_mtu = 1;
  attributes.address = host_.address_of(peer_).vector;
  for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kRawPacket}) {
    QueuePair qp(host_.config(100, type));
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive}) {
      attributes.state = to;
      ASSERT_TRUE(qp.modify(attributes, kAttrState | edge_of(type, qp.state(), to).required, host_.port()));
    }
    EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kOpcodeNotForQp);
  }
}

TEST_F(UdReceiveTest, NoReceiveMeansADrop) {
  EXPECT_EQ(receive(good()), Drop::kNoReceiveRequest);
  EXPECT_FALSE(host_.receive_completions().poll());
}

TEST_F(UdReceiveTest, AReceiveTooSmallIsNotConsumed) {
  post(7, 89);
  EXPECT_EQ(receive(good()), Drop::kReceiveTooSmall);
  EXPECT_FALSE(host_.receive_completions().poll());
  payload_.resize(49);
  EXPECT_EQ(receive(good()), Drop::kNone);
  EXPECT_EQ(host_.receive_completions().poll()->wr_id, 7U);
}

TEST_F(UdReceiveTest, ASharedReceiveTooSmallIsNotConsumed) {
  testing::QueueSource shared(4, 2);
  QpConfig config = host_.config(100);
  config.shared_receives = &shared;
  QueuePair qp(config);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToReceive, host_.port()));
  EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kNoReceiveRequest);
  const Sge small = host_.sge(0, 89);
  ASSERT_EQ(shared.queue().post(3, {&small, 1}), 0);
  EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kReceiveTooSmall);
  EXPECT_EQ(shared.queue().size(), 1U);
  payload_.resize(49);
  EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kNone);
  EXPECT_EQ(host_.receive_completions().poll()->wr_id, 3U);
}

TEST_F(UdReceiveTest, BadMemoryCompletesWithItsErrorAndTakesTheQueuePairToError) {
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port(), kAttrSendPsn));
  MemoryRegion read_only = host_.region_of(host_.bytes().data(), 1000, kRemoteRead);
  ASSERT_TRUE(host_.memory().insert(read_only));
  Sge sge = host_.sge(0, 90);
  sge.lkey = read_only.key.value();
  ASSERT_EQ(qp_.post_receive(1, {&sge, 1}), 0);
  post(2, 90);
  SendRequest send;
  const AddressHandle address = host_.address_of(peer_);
  send.address = &address;
  send.wr_id = 9;
  ASSERT_EQ(qp_.post_send(send), 0);

  EXPECT_EQ(receive(good()), Drop::kReceiveProtection);
  EXPECT_EQ(qp_.state(), QpState::kError);
  const auto failed = host_.receive_completions().poll();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->wr_id, 1U);
  EXPECT_EQ(failed->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(failed->vendor_error, static_cast<std::uint32_t>(MemoryFault::kNoAccess));
  const auto flushed = host_.receive_completions().poll();
  ASSERT_TRUE(flushed);
  EXPECT_EQ(flushed->wr_id, 2U);
  EXPECT_EQ(flushed->status, WcStatus::kFlushError);
  EXPECT_EQ(host_.bytes()[0], std::byte{0}) << "nothing was written";

  EXPECT_TRUE(qp_.has_untransmitted());
  qp_.settle_send();
  EXPECT_EQ(host_.send_completions().poll()->status, WcStatus::kFlushError);
  EXPECT_FALSE(qp_.has_untransmitted());
}

TEST_F(UdReceiveTest, MemoryThatIsNotTouchedIsNotChecked) {
  const std::array sges{host_.sge(0, 90), Sge{0, 100, 0xbad}};
  ASSERT_EQ(qp_.post_receive(1, sges), 0);
  EXPECT_EQ(receive(good()), Drop::kNone);
}

TEST_F(UdReceiveTest, AFullCompletionQueueIsANamedDrop) {
  testing::QueueSink tiny(1);
  QpConfig config = host_.config(100);
  config.receive_completions = &tiny;
  QueuePair qp(config);
  ASSERT_TRUE(bring_to(qp, QpState::kReadyToReceive, host_.port()));
  const Sge sge = host_.sge(0, 90);
  ASSERT_EQ(qp.post_receive(1, {&sge, 1}), 0);
  ASSERT_EQ(qp.post_receive(2, {&sge, 1}), 0);
  EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kNone);
  EXPECT_EQ(qp.on_packet(good(), envelope_, 100, {}), Drop::kCqOverrun);
  EXPECT_TRUE(tiny.queue().overrun());
}

}  // namespace
}  // namespace verbena::engine
