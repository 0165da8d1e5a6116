#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/responder.h"
#include "engine/testing/responder_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::pattern;
using testing::responder::expect_answer;
using testing::responder::fetch_add;
using testing::responder::kAccessNak;
using testing::responder::kAck;
using testing::responder::kInvalidNak;
using testing::responder::kMtu;
using testing::responder::kOperationalNak;
using testing::responder::psn;
using testing::responder::send;
using testing::responder::with_key;
using wire::Opcode;

// --- refusals

struct Refused {
  std::string name;
  std::function<std::vector<wire::Packet>(ConnectionBench&)> packets;  // the last one is refused
  Drop drop = Drop::kInvalidRequest;
  std::uint8_t syndrome = kInvalidNak;
  QpEvent event = QpEvent::kRequestError;
};

std::vector<wire::Packet> one(wire::Packet packet, std::size_t payload = 0) {
  static const auto kContent = pattern(2 * kMtu);
  packet.payload = std::span(kContent).first(payload);
  return {packet};
}
std::vector<wire::Packet> two(const std::vector<wire::Packet>& first, const std::vector<wire::Packet>& second) {
  return {first.front(), second.front()};
}
wire::Packet atomic(ConnectionBench& bench, std::uint64_t address, std::uint32_t key) {
  wire::Packet packet = bench.incoming(Opcode::kRcFetchAdd, psn(0));
  packet.atomic_eth = {address, MemoryKey(key), 1, 0};
  return packet;
}
wire::Packet flush(ConnectionBench& bench, std::uint8_t placement) {
  wire::Packet packet = bench.incoming_write(Opcode::kRcFlush, psn(0), 8);
  packet.feth.placement = placement;
  return packet;
}

const std::vector<Refused>& refusals() {
  using Bench = ConnectionBench;
  constexpr std::uint32_t kSize = Bench::kGrantedSize;
  static const std::vector<Refused> kAll{
      {"MiddleWithoutFirst", [](Bench& b) { return one(b.incoming(Opcode::kRcSendMiddle, psn(0)), kMtu); }},
      {"LastWithoutFirst", [](Bench& b) { return one(b.incoming(Opcode::kRcWriteLast, psn(0)), 8); }},
      {"FirstInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming_write(Opcode::kRcWriteFirst, psn(1), 2 * kMtu), kMtu));
       }},
      {"AnotherKindInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming(Opcode::kRcSendLast, psn(1)), 8));
       }},
      {"AReadInAMessage",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu),
                    one(b.incoming_write(Opcode::kRcReadRequest, psn(1), 8)));
       }},
      {"FirstShorterThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu - 4); }},
      {"FirstLongerThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), 2 * kMtu), kMtu + 4); }},
      {"OnlyLongerThanTheMtu",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), kMtu + 4), kMtu + 4); }},
      {"EmptyLast",
       [](Bench& b) {
         return two(one(b.incoming_write(Opcode::kRcWriteFirst, psn(0), kMtu), kMtu),
                    one(b.incoming(Opcode::kRcWriteLast, psn(1))));
       }},
      {"AWriteShorterThanItSaid", [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 16), 12); }},
      {"AWriteLongerThanItSaid", [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), 12); }},
      {"AReadWithPayload", [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8), 8); }},
      {"AnAtomicThatIsMisaligned", [](Bench& b) { return one(atomic(b, b.granted_address() + 4, b.rkey().value())); }},
      {"AnAtomicWriteThatIsMisaligned",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 8, 4), 8); }},
      {"AnAtomicWriteOfFourBytes",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 4), 4); }},
      {"AFlushToNowhere", [](Bench& b) { return one(flush(b, 0)); }},
      {"AReadOfMoreThanAMessage",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 0x80000001)); }},
      {"AWriteWithAWrongKey",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), 0x1234), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadWithAWrongKey",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8), 0)); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AWriteBeyondTheEnd",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8, kSize - 4), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadBeforeTheBeginning",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 8, std::size_t(0) - 8)); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AReadThatWrapsAround",
       [](Bench& b) { return one(b.incoming_write(Opcode::kRcReadRequest, psn(0), 0x7fffffff)); }, Drop::kRemoteAccess,
       kAccessNak, QpEvent::kAccessError},
      {"AnAtomicBeyondTheEnd", [](Bench& b) { return one(atomic(b, b.granted_address() + kSize, b.rkey().value())); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
      {"AWriteToLocalMemory",
       [](Bench& b) { return one(with_key(b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8), b.host().lkey()), 8); },
       Drop::kRemoteAccess, kAccessNak, QpEvent::kAccessError},
  };
  return kAll;
}

class ResponderRefusalTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ResponderRefusalTest, IsTheEndOfTheConnection) {
  const Refused& refused = refusals()[GetParam()];
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 64);
  bench.post(SendOpcode::kSend, 16, 2, 0);
  const std::vector<std::byte> before(bench.host().bytes().begin(), bench.host().bytes().end());
  const auto packets = refused.packets(bench);
  if (packets.size() == 2) {
    EXPECT_EQ(bench.receive(packets[0]), Drop::kNone);
    bench.responses();
  }
  EXPECT_EQ(bench.receive(packets.back()), refused.drop);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  expect_answer(bench, refused.syndrome, packets.back().bth.psn.value());
  EXPECT_EQ(bench.qp().poll_event(), refused.event);
  const auto receive = bench.received();
  ASSERT_TRUE(receive);
  EXPECT_EQ(receive->status, WcStatus::kFlushError);
  const auto sent = bench.sent();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->status, WcStatus::kFlushError);
  if (packets.size() == 1) {
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bench.host().bytes().begin())) << "nothing was touched";
  }
  EXPECT_EQ(bench.receive(packets.back()), Drop::kBadQpState);
}

INSTANTIATE_TEST_SUITE_P(Requests, ResponderRefusalTest, ::testing::Range<std::size_t>(0, refusals().size()),
                         [](const auto& instance) { return refusals()[instance.param].name; });

TEST(Responder, EachRightIsNeededOnTheRegionAndOnTheQueuePair) {
  struct Case {
    AccessFlags right;
    std::function<wire::Packet(ConnectionBench&)> packet;
  };
  static const auto kWord = pattern(8);
  const std::vector<Case> cases{
      {kRemoteWrite,
       [](ConnectionBench& b) {
         auto packet = b.incoming_write(Opcode::kRcWriteOnly, psn(0), 8);
         packet.payload = kWord;
         return packet;
       }},
      {kRemoteRead, [](ConnectionBench& b) { return b.incoming_write(Opcode::kRcReadRequest, psn(0), 8); }},
      {kRemoteAtomic, [](ConnectionBench& b) { return fetch_add(b, psn(0), 1); }},
      {kRemoteWrite,
       [](ConnectionBench& b) {
         auto packet = b.incoming_write(Opcode::kRcAtomicWrite, psn(0), 8);
         packet.payload = kWord;
         return packet;
       }},
      {kFlushGlobal, [](ConnectionBench& b) { return flush(b, 1); }},
      {kFlushPersistent, [](ConnectionBench& b) { return flush(b, 2); }},
  };
  for (const Case& one_of : cases) {
    for (const bool on_region : {true, false}) {
      ConnectionBench bench;
      if (!on_region) bench.attributes.access = ConnectionBench::kAll & ~one_of.right;
      bench.bring_up();
      if (on_region) bench.granted_region().access = ConnectionBench::kAll & ~one_of.right;
      EXPECT_EQ(bench.receive(one_of.packet(bench)), Drop::kRemoteAccess) << one_of.right << on_region;
      expect_answer(bench, kAccessNak, psn(0));
    }
    ConnectionBench bench;
    bench.bring_up();
    EXPECT_EQ(bench.receive(one_of.packet(bench)), Drop::kNone) << one_of.right;
  }
}

TEST(Responder, AnotherDomainsMemoryIsNotTouched) {
  ConnectionBench bench;
  bench.bring_up();
  ProtectionDomain other{2};
  bench.granted_region().domain = &other;
  wire::Packet write = bench.incoming_write(Opcode::kRcWriteOnly, psn(0), 8);
  const auto content = pattern(8);
  write.payload = content;
  EXPECT_EQ(bench.receive(write), Drop::kRemoteAccess);
  EXPECT_EQ(bench.granted()[0], std::byte{0});
}

TEST(Responder, AMessageLongerThanItsReceiveEndsTheConnectionAtBothEnds) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, kMtu + 10);
  bench.post_receive(2, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  bench.responses();
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendLast, psn(1), content)), Drop::kReceiveTooSmall);
  expect_answer(bench, kInvalidNak, psn(1));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 1U);
  EXPECT_EQ(completion->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(bench.received()->status, WcStatus::kFlushError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
  EXPECT_FALSE(bench.qp().poll_event()) << "a completion has told it";
}

TEST(Responder, AReceiveThatMayNotBeWrittenIsAnOperationalError) {
  ConnectionBench bench;
  bench.bring_up();
  const Sge bad{1, 64, 0xbad};
  ASSERT_EQ(bench.qp().post_receive(1, {&bad, 1}), 0);
  const auto content = pattern(8);
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), content)), Drop::kReceiveProtection);
  expect_answer(bench, kOperationalNak, psn(0));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalProtectionError);
  EXPECT_EQ(bench.qp().state(), QpState::kError);
}

TEST(Responder, AReceiveThatAMessageHasBegunToFillIsFlushedWithTheOthers) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 4096);
  bench.post_receive(2, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  ASSERT_TRUE(bench.go(QpState::kError));
  for (const std::uint64_t wr_id : {1U, 2U}) {
    const auto completion = bench.received();
    ASSERT_TRUE(completion);
    EXPECT_EQ(completion->wr_id, wr_id);
    EXPECT_EQ(completion->status, WcStatus::kFlushError);
  }
}

TEST(Responder, ABadOpcodeInAMessageFailsItsReceive) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post_receive(1, 4096);
  const auto content = pattern(kMtu);
  bench.receive(send(bench, Opcode::kRcSendFirst, psn(0), content));
  bench.responses();
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(1), content)), Drop::kInvalidRequest);
  expect_answer(bench, kInvalidNak, psn(1));
  const auto completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kRemoteInvalidRequestError);
  EXPECT_FALSE(bench.qp().poll_event());
}

TEST(Responder, OfNothingTouchesNothing) {
  ConnectionBench bench;
  bench.bring_up();
  wire::Packet write = with_key(bench.incoming_write(Opcode::kRcWriteOnly, psn(0), 0), 0xffffffff);
  EXPECT_EQ(bench.receive(write), Drop::kNone) << "the key is not looked at";
  expect_answer(bench, kAck, psn(0));
}

}  // namespace
}  // namespace verbena::engine
