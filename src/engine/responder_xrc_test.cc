// Requests of XRC: which shared receive queue they reach, and with it which memory and which completion queue.
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/responder_facts.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::kSharedQueue;
using testing::pattern;
using testing::QueueSink;
using testing::QueueSource;
using testing::responder::fetch_add;
using testing::responder::kAccessNak;
using testing::responder::kAck;
using testing::responder::kInvalidNak;
using testing::responder::kMtu;
using testing::responder::kOperationalNak;
using testing::responder::kRnrNak;
using testing::responder::kSequenceNak;
using testing::responder::psn;
using testing::responder::send;
using wire::Opcode;

constexpr std::uint32_t kOtherQueue = kSharedQueue + 1;

// A second queue of the domain, in a protection domain of its own, with a region of its own.
class Other {
 public:
  explicit Other(ConnectionBench& bench) : bench_(bench) {
    region_ = {&domain_,
               reinterpret_cast<std::uint64_t>(bytes_.data()),
               bytes_.size(),
               reinterpret_cast<std::uint64_t>(bytes_.data()),
               ConnectionBench::kAll,
               {}};
    static_cast<void>(bench.host().memory().insert(region_));
    bench.host().xrc().add(kOtherQueue, {{&domain_, &bench.host().memory(), nullptr}, &receives_, &completions_, 0});
  }
  void post(std::uint64_t wr_id, std::uint32_t length) {
    const Sge sge{region_.address, length, region_.key.value()};
    receives_.queue().post(wr_id, {&sge, 1});
  }
  std::optional<Completion> received() { return completions_.poll(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  const MemoryRegion& region() const { return region_; }
  wire::Packet incoming_write(std::uint32_t at, std::span<const std::byte> content, std::uint32_t queue) {
    wire::Packet packet = send(bench_, Opcode::kRcWriteOnly, at, content);
    packet.reth = {region_.address, region_.key, static_cast<std::uint32_t>(content.size())};
    packet.xrceth.srqn = queue;
    return packet;
  }

 private:
  ConnectionBench& bench_;
  ProtectionDomain domain_{2};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1024);
  MemoryRegion region_;
  QueueSource receives_{8, 4};
  QueueSink completions_;
};

class XrcResponder : public ::testing::Test {
 protected:
  XrcResponder() { bench_.bring_up(); }

  wire::Packet send_to(std::uint32_t queue, Opcode opcode, std::uint32_t at, std::span<const std::byte> payload) {
    wire::Packet packet = send(bench_, opcode, at, payload);
    packet.xrceth.srqn = queue;
    return packet;
  }
  void expect_answer(std::uint8_t syndrome, std::uint32_t of) {
    const auto answers = bench_.responses();
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].opcode(), Opcode::kXrcAcknowledge);
    const bool is_ack = (answers[0].syndrome() & 0x60) == 0;
    EXPECT_EQ(is_ack ? kAck : answers[0].syndrome(), syndrome);
    EXPECT_EQ(answers[0].psn(), of);
  }
  void expect_dead(QpEvent event) {
    EXPECT_EQ(bench_.qp().state(), QpState::kError);
    std::vector<QpEvent> events;
    while (const auto one = bench_.qp().poll_event()) events.push_back(*one);
    EXPECT_EQ(std::count(events.begin(), events.end(), event), 1);
    EXPECT_EQ(std::count(events.begin(), events.end(), QpEvent::kLastWqeReached), 1);
  }
  const std::vector<std::byte> content_ = pattern(3 * kMtu);
  std::span<const std::byte> part(std::size_t from, std::size_t size) const {
    return std::span(content_).subspan(from, size);
  }

  ConnectionBench bench_{QpType::kXrcReceive};
};

TEST_F(XrcResponder, DeliversEachMessageIntoTheQueueThatItNames) {
  Other other(bench_);
  bench_.post_receive(1, 1000);
  other.post(2, 1000);
  EXPECT_EQ(bench_.receive(send_to(kOtherQueue, Opcode::kRcSendOnly, psn(0), part(0, 40))), Drop::kNone);
  wire::Packet second = send_to(kSharedQueue, Opcode::kRcSendOnlyImm, psn(1), part(40, 20));
  second.imm_dt.network_order = 0x01020304;
  EXPECT_EQ(bench_.receive(second), Drop::kNone);

  const auto theirs = other.received();
  ASSERT_TRUE(theirs);
  EXPECT_EQ(theirs->wr_id, 2U);
  EXPECT_EQ(theirs->byte_length, 40U);
  EXPECT_EQ(theirs->qp_number, ConnectionBench::kOwnQpn) << "of the queue pair that received it";
  EXPECT_EQ(theirs->source_qp, ConnectionBench::kPeerQpn);
  EXPECT_TRUE(std::equal(other.bytes().begin(), other.bytes().begin() + 40, content_.begin()));
  const auto ours = bench_.received();
  ASSERT_TRUE(ours);
  EXPECT_EQ(ours->wr_id, 1U);
  EXPECT_EQ(ours->immediate, 0x01020304U);
  EXPECT_FALSE(bench_.received());
  EXPECT_FALSE(other.received());
  expect_answer(kAck, psn(1));
}

TEST_F(XrcResponder, PutsAMessageOfSeveralPacketsTogether) {
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendFirst, psn(0), part(0, kMtu))), Drop::kNone);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendMiddle, psn(1), part(kMtu, kMtu))), Drop::kNone);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendLast, psn(2), part(2 * kMtu, kMtu))), Drop::kNone);
  const auto completion = bench_.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kSuccess);
  EXPECT_EQ(completion->byte_length, 3 * kMtu);
  EXPECT_TRUE(std::equal(content_.begin(), content_.end(), bench_.host().bytes().begin() + 0x4000));
}

TEST_F(XrcResponder, RefusesAQueueThatTheDomainDoesNotHave) {
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(0x777, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kUnknownSharedQueue);
  expect_answer(kInvalidNak, psn(0));
  expect_dead(QpEvent::kRequestError);
  EXPECT_FALSE(bench_.received()) << "what is in other queues stays there";
  EXPECT_EQ(bench_.host().shared_receives().size(), 1U);
}

TEST_F(XrcResponder, AsksOneSidedRequestsForAQueueToo) {
  for (const Opcode opcode :
       {Opcode::kRcWriteOnly, Opcode::kRcReadRequest, Opcode::kRcFetchAdd, Opcode::kRcFlush, Opcode::kRcAtomicWrite}) {
    ConnectionBench bench(QpType::kXrcReceive);
    bench.bring_up();
    wire::Packet packet = bench.incoming_write(opcode, psn(0), 8);
    packet.atomic_eth = {bench.granted_address(), bench.rkey(), 1, 0};
    packet.feth.placement = 1;
    if (wire::row_of(opcode).has_payload) packet.payload = part(0, 8);
    packet.xrceth.srqn = 0x777;
    EXPECT_EQ(bench.receive(packet), Drop::kUnknownSharedQueue) << wire::row_of(opcode).name;
    EXPECT_EQ(bench.qp().state(), QpState::kError);
    packet.xrceth.srqn = kSharedQueue;
    ConnectionBench good(QpType::kXrcReceive);
    good.bring_up();
    packet.reth.address = packet.atomic_eth.address = good.granted_address();
    packet.reth.rkey = packet.atomic_eth.rkey = good.rkey();
    EXPECT_EQ(good.receive(packet), Drop::kNone) << wire::row_of(opcode).name;
  }
}

TEST_F(XrcResponder, MemoryIsThatOfTheQueuesProtectionDomain) {
  Other other(bench_);
  EXPECT_EQ(bench_.receive(other.incoming_write(psn(0), part(0, 16), kOtherQueue)), Drop::kNone);
  EXPECT_TRUE(std::equal(other.bytes().begin(), other.bytes().begin() + 16, content_.begin()));
  expect_answer(kAck, psn(0));
  EXPECT_EQ(bench_.receive(other.incoming_write(psn(1), part(16, 16), kSharedQueue)), Drop::kRemoteAccess);
  expect_answer(kAccessNak, psn(1));
  expect_dead(QpEvent::kAccessError);
}

TEST_F(XrcResponder, ReadsAndAtomicsAnswerFromTheQueuesProtectionDomain) {
  Other other(bench_);
  wire::Packet read = bench_.incoming(Opcode::kRcReadRequest, psn(0));
  read.reth = {other.region().address, other.region().key, kMtu + 8};
  read.xrceth.srqn = kOtherQueue;
  EXPECT_EQ(bench_.receive(read), Drop::kNone);
  EXPECT_EQ(bench_.receive(fetch_add(bench_, psn(2), 5)), Drop::kNone) << "of the first queue's domain";
  const auto answers = bench_.responses();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kXrcReadResponseFirst);
  EXPECT_EQ(answers[1].opcode(), Opcode::kXrcReadResponseLast);
  EXPECT_EQ(answers[2].opcode(), Opcode::kXrcAtomicAcknowledge);
  EXPECT_EQ(bench_.receive(read), Drop::kNone) << "a copy is answered again, by the same queue";
  EXPECT_EQ(bench_.responses().size(), 2U);
  read.xrceth.srqn = kSharedQueue;
  EXPECT_EQ(bench_.receive(read), Drop::kDuplicateRequest) << "not a copy";
}

TEST_F(XrcResponder, ARefusesAReadWhoseQueueWentBeforeItWasAnswered) {
  EXPECT_EQ(bench_.receive(bench_.incoming_write(Opcode::kRcReadRequest, psn(0), 8)), Drop::kNone);
  bench_.host().xrc().remove(kSharedQueue);
  expect_answer(kAccessNak, psn(0));
  EXPECT_EQ(bench_.qp().state(), QpState::kError);
}

TEST_F(XrcResponder, AMessageStaysWithItsQueue) {
  Other other(bench_);
  bench_.post_receive(1, 1000);
  other.post(2, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendFirst, psn(0), part(0, kMtu))), Drop::kNone);
  bench_.responses();
  EXPECT_EQ(bench_.receive(send_to(kOtherQueue, Opcode::kRcSendLast, psn(1), part(kMtu, 8))),
            Drop::kUnknownSharedQueue);
  expect_answer(kInvalidNak, psn(1));
  EXPECT_EQ(bench_.qp().state(), QpState::kError);
  const auto completion = bench_.received();
  ASSERT_TRUE(completion) << "the receive that was begun ends where it came from";
  EXPECT_EQ(completion->wr_id, 1U);
  EXPECT_EQ(completion->status, WcStatus::kRemoteInvalidRequestError);
  EXPECT_FALSE(other.received());
}

TEST_F(XrcResponder, AReceiveWhoseQueueWentCompletesNowhere) {
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendFirst, psn(0), part(0, kMtu))), Drop::kNone);
  bench_.responses();
  bench_.host().xrc().add(kSharedQueue, bench_.host().xrc_target());  // another queue has the number now
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendLast, psn(1), part(kMtu, 8))),
            Drop::kUnknownSharedQueue);
  expect_answer(kInvalidNak, psn(1));
  expect_dead(QpEvent::kRequestError);
  EXPECT_FALSE(bench_.received());
}

TEST_F(XrcResponder, TheErrorStateFlushesWhatAMessageHasBegun) {
  bench_.post_receive(1, 1000);
  bench_.post_receive(2, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendFirst, psn(0), part(0, kMtu))), Drop::kNone);
  ASSERT_TRUE(bench_.go(QpState::kError));
  const auto completion = bench_.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 1U);
  EXPECT_EQ(completion->status, WcStatus::kFlushError);
  EXPECT_FALSE(bench_.received()) << "the other is the queue's";
  expect_dead(QpEvent::kLastWqeReached);
}

TEST_F(XrcResponder, IsNotReadyWhereTheQueueIsEmpty) {
  Other other(bench_);
  other.post(2, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNoReceiveRequest);
  expect_answer(kRnrNak, psn(0));
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNone);
  expect_answer(kAck, psn(0));
  ASSERT_TRUE(bench_.received());
}

TEST_F(XrcResponder, KeepsTheOrderOfPsnsWhateverTheQueue) {
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(0x777, Opcode::kRcSendOnly, psn(1), part(0, 8))), Drop::kOutOfSequence);
  expect_answer(kSequenceNak, psn(0));
  EXPECT_EQ(bench_.qp().state(), QpState::kReadyToSend) << "what is out of sequence is not looked at";
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNone);
  bench_.responses();
  EXPECT_EQ(bench_.receive(send_to(0x777, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNone) << "a copy";
  expect_answer(kAck, psn(0));
}

TEST_F(XrcResponder, AReceiveThatIsTooSmallOrNotItsOwnFails) {
  bench_.post_receive(1, 4);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kReceiveTooSmall);
  expect_answer(kInvalidNak, psn(0));
  auto completion = bench_.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalLengthError);

  ConnectionBench bench(QpType::kXrcReceive);
  bench.bring_up();
  Other other(bench);
  const Sge foreign{other.region().address, 100, other.region().key.value()};
  bench.host().shared_receives().post(7, {&foreign, 1});
  EXPECT_EQ(bench.receive(send(bench, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kReceiveProtection);
  EXPECT_EQ(bench.responses().at(0).syndrome(), kOperationalNak);
  completion = bench.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalProtectionError);
}

TEST_F(XrcResponder, ACompletionThatFindsNoRoomTakesTheQueuePairWithIt) {
  QueueSink full(1);
  XrcTarget target = bench_.host().xrc_target();
  target.completions = &full;
  bench_.host().xrc().add(kSharedQueue, target);
  for (std::uint64_t i = 1; i <= 2; ++i) bench_.post_receive(i, 64);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNone);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(1), part(0, 8))), Drop::kCqOverrun);
  expect_dead(QpEvent::kFatal);
}

TEST_F(XrcResponder, HasNoQueuesOfItsOwn) {
  EXPECT_EQ(bench_.qp().post_receive(1, {}), EINVAL);
  EXPECT_EQ(bench_.post(SendOpcode::kSend), EINVAL);
  EXPECT_EQ(bench_.receive(send(bench_, Opcode::kUcSendOnly, psn(0), part(0, 8))), Drop::kOpcodeNotForQp);
  wire::Packet answer = bench_.incoming(Opcode::kRcAcknowledge, 0);
  EXPECT_EQ(bench_.respond(answer), Drop::kOpcodeNotForQp);
}

TEST_F(XrcResponder, BeginsAnewAfterAReset) {
  bench_.post_receive(1, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendFirst, psn(0), part(0, kMtu))), Drop::kNone);
  ASSERT_TRUE(bench_.go(QpState::kReset));
  bench_.bring_up();
  bench_.post_receive(2, 1000);
  EXPECT_EQ(bench_.receive(send_to(kSharedQueue, Opcode::kRcSendOnly, psn(0), part(0, 8))), Drop::kNone);
  const auto completion = bench_.received();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->wr_id, 2U);
}

}  // namespace
}  // namespace verbena::engine
