#include "transport/shm/exchange.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "transport/testing.h"

namespace verbena::transport {
namespace {

using testing::Batch;
using testing::Drops;
using ::testing::ElementsAre;
using testing::Recorder;

constexpr std::size_t kAll = 1000;

std::unique_ptr<Exchange> open_exchange(DropCounter& drops, std::uint32_t offset = 0) {
  ExchangeOptions options;
  options.slot_offset = offset;
  options.ring_capacity = 1 << 14;
  auto exchange = Exchange::open(options, drops);
  EXPECT_TRUE(exchange) << exchange.error().message;
  return std::move(*exchange);
}

bool is_readable(const Exchange& exchange) {
  pollfd one{exchange.fd(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

std::size_t receive_all(Exchange& exchange, Recorder& recorder) {
  exchange.serve();
  return exchange.receive(recorder, kAll);
}

struct TwoProcesses {
  Drops drops_a;
  Drops drops_b;
  std::unique_ptr<Exchange> a = open_exchange(drops_a);
  std::unique_ptr<Exchange> b = open_exchange(drops_b);
  Recorder at_a;
  Recorder at_b;
};

TEST(Exchange, ClaimsDifferentSlotsFromTheOffsetOn) {
  Drops drops;
  const auto first = open_exchange(drops, 100);
  const auto second = open_exchange(drops, 100);
  EXPECT_NE(first->slot(), second->slot());
  EXPECT_NE(first->slot(), Slot{});
  const auto more = first->claim_another();
  ASSERT_TRUE(more);
  EXPECT_TRUE(first->owns(*more));
  EXPECT_TRUE(first->owns(first->slot()));
  EXPECT_FALSE(second->owns(*more));
}

TEST(Exchange, RefusesACapacityThatIsNoRings) {
  Drops drops;
  ExchangeOptions options;
  options.ring_capacity = 5000;
  EXPECT_EQ(Exchange::open(options, drops).error().code, ErrorCode::kInvalidArgument);
}

TEST(Exchange, SaysWhenAllSlotsAreTaken) {
  Drops drops;
  const auto exchange = open_exchange(drops);
  auto claimed = exchange->claim_another();
  for (int i = 0; i < 255 && claimed; ++i) claimed = exchange->claim_another();
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ErrorCode::kExhausted);
}

TEST(Exchange, CarriesABatchInOrderWithItsEnvelopes) {
  TwoProcesses p;
  Batch batch;
  auto other = testing::example_envelope();
  other.source_port = 50001;
  batch.add(testing::example_envelope(), testing::bytes_of("one"), true);
  batch.add(other, testing::bytes_of(""));
  batch.add(other, testing::bytes_of("three"));
  const auto result = p.a->send(p.b->slot(), batch.get(), {});
  EXPECT_EQ(result.reach, Reach::kShared);
  EXPECT_EQ(result.sent.taken, 3U);
  EXPECT_FALSE(result.sent.full);
  EXPECT_EQ(receive_all(*p.b, p.at_b), 3U);
  EXPECT_THAT(p.at_b.texts(), ElementsAre("one", "", "three"));
  EXPECT_EQ(p.at_b.all[0].envelope, testing::example_envelope());
  EXPECT_EQ(p.at_b.all[2].envelope, other);
  EXPECT_TRUE(p.at_b.all[0].has_icrc);
  EXPECT_FALSE(p.at_b.all[1].has_icrc);
  EXPECT_EQ(p.drops_a.total() + p.drops_b.total(), 0U);
}

TEST(Exchange, CarriesBothDirectionsAndEverySlotOfAProcess) {
  TwoProcesses p;
  const auto second = p.b->claim_another();
  ASSERT_TRUE(second);
  p.a->send(p.b->slot(), Batch({"first"}).get(), {});
  p.a->send(*second, Batch({"second"}).get(), {});
  p.b->send(p.a->slot(), Batch({"back"}).get(), {});
  EXPECT_EQ(receive_all(*p.b, p.at_b), 2U);
  EXPECT_EQ(receive_all(*p.a, p.at_a), 1U);
  EXPECT_THAT(p.at_a.texts(), ElementsAre("back"));
}

TEST(Exchange, CarriesToItself) {
  Drops drops;
  Recorder recorder;
  const auto exchange = open_exchange(drops);
  const auto second = exchange->claim_another();
  ASSERT_TRUE(second);
  EXPECT_EQ(exchange->send(exchange->slot(), Batch({"a"}).get(), {}).sent.taken, 1U);
  EXPECT_EQ(exchange->send(*second, Batch({"b"}).get(), {}).sent.taken, 1U);
  EXPECT_EQ(exchange->receive(recorder, kAll), 2U);
  EXPECT_THAT(recorder.texts(), ElementsAre("a", "b"));
}

TEST(Exchange, LetsAReceiverAnswerFromWithin) {
  class Echo final : public Receiver {
   public:
    Echo(Exchange& exchange, Slot to) : exchange_(exchange), to_(to) {}
    Receipt on_datagram(const Incoming& datagram) noexcept override {
      Batch batch;
      batch.add(datagram.envelope, {datagram.bytes.begin(), datagram.bytes.end()});
      exchange_.send(to_, batch.get(), {});
      return Receipt::kTaken;
    }

   private:
    Exchange& exchange_;
    Slot to_;
  };
  TwoProcesses p;
  Echo echo(*p.b, p.a->slot());
  p.a->send(p.b->slot(), Batch({"ping"}).get(), {});
  p.b->serve();
  EXPECT_EQ(p.b->receive(echo, kAll), 1U);
  EXPECT_EQ(receive_all(*p.a, p.at_a), 1U);
  EXPECT_THAT(p.at_a.texts(), ElementsAre("ping"));
}

TEST(Exchange, KeepsToTheBudgetAndTakesTurns) {
  TwoProcesses p;
  Drops drops;
  const auto c = open_exchange(drops);
  for (int i = 0; i < 20; ++i) {
    p.a->send(p.b->slot(), Batch({"a"}).get(), {});
    c->send(p.b->slot(), Batch({"c"}).get(), {});
  }
  p.b->serve();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.b->receive(p.at_b, 5), 5U);
  EXPECT_EQ(std::ranges::count(p.at_b.texts(), "a"), 10);
  EXPECT_EQ(std::ranges::count(p.at_b.texts(), "c"), 10);
}

TEST(Exchange, FindsASlotAbsentAndLooksAgainNoSoonerThanTheInterval) {
  Drops drops;
  const auto a = open_exchange(drops);
  auto b = open_exchange(drops);
  const auto slot = b->slot();
  b.reset();
  const Instant start{1000};
  const auto result = a->send(slot, Batch({"x"}).get(), start);
  EXPECT_EQ(result.reach, Reach::kAbsent);
  EXPECT_EQ(result.sent.taken, 0U);
  b = open_exchange(drops, slot.value() - 1U);
  ASSERT_EQ(b->slot(), slot);
  EXPECT_EQ(a->reach(slot, start + std::chrono::milliseconds(9)), Reach::kAbsent);
  EXPECT_EQ(a->reach(slot, start + std::chrono::milliseconds(10)), Reach::kShared);
  EXPECT_EQ(drops.total(), 0U);
}

TEST(Exchange, NeverReachesTheManagementSlot) {
  Drops drops;
  const auto exchange = open_exchange(drops);
  EXPECT_EQ(exchange->reach(Slot{}, {}), Reach::kAbsent);
  EXPECT_EQ(exchange->send(Slot{}, Batch({"x"}).get(), {}).reach, Reach::kAbsent);
}

TEST(Exchange, RingsTheDoorbellOfASleeperOnly) {
  TwoProcesses p;
  p.a->send(p.b->slot(), Batch({"x"}).get(), {});
  receive_all(*p.b, p.at_b);
  EXPECT_FALSE(is_readable(*p.b));
  p.a->send(p.b->slot(), Batch({"y"}).get(), {});
  EXPECT_FALSE(is_readable(*p.b)) << "nobody asked for a doorbell";
  EXPECT_FALSE(p.b->arm_doorbells()) << "there is something";
  p.b->disarm_doorbells();
  EXPECT_EQ(receive_all(*p.b, p.at_b), 1U);

  EXPECT_TRUE(p.b->arm_doorbells());
  EXPECT_FALSE(is_readable(*p.b));
  p.a->send(p.b->slot(), Batch({"z"}).get(), {});
  EXPECT_TRUE(is_readable(*p.b));
  p.b->serve();
  EXPECT_FALSE(is_readable(*p.b)) << "a doorbell rings once";
  p.b->disarm_doorbells();
  EXPECT_EQ(receive_all(*p.b, p.at_b), 1U);

  EXPECT_TRUE(p.b->arm_doorbells());
  p.b->send(p.b->slot(), Batch({"to myself"}).get(), {});
  EXPECT_TRUE(is_readable(*p.b));
}

TEST(Exchange, DoesNotSleepOverAConnectionThatCarriesSomething) {
  TwoProcesses p;
  p.a->send(p.b->slot(), Batch({"x"}).get(), {});
  EXPECT_TRUE(is_readable(*p.b));
  p.b->serve();
  EXPECT_FALSE(p.b->arm_doorbells());
}

TEST(Exchange, IsFullForAWhileThenDropsForAStalledPeer) {
  TwoProcesses p;
  const Batch batch({std::string(1000, 'x')});
  Instant now{0};
  std::size_t stored = 0;
  while (!p.a->send(p.b->slot(), batch.get(), now).sent.full) ++stored;
  EXPECT_GT(stored, 10U);
  now = now + std::chrono::milliseconds(99);
  EXPECT_TRUE(p.a->send(p.b->slot(), batch.get(), now).sent.full);
  EXPECT_EQ(p.drops_a.total(), 0U);
  now = now + std::chrono::milliseconds(1);
  EXPECT_EQ(p.a->send(p.b->slot(), batch.get(), now).sent.taken, 1U);
  EXPECT_EQ(p.drops_a.of(Drop::kPeerStalled), 1U);

  EXPECT_EQ(receive_all(*p.b, p.at_b), stored);
  EXPECT_EQ(p.a->send(p.b->slot(), batch.get(), now).sent.taken, 1U);
  EXPECT_EQ(p.drops_a.of(Drop::kPeerStalled), 1U) << "the peer takes again";
}

TEST(Exchange, DropsWhatNoRingTakes) {
  TwoProcesses p;
  const auto result = p.a->send(p.b->slot(), Batch({std::string(10000, 'x'), "y"}).get(), {});
  EXPECT_EQ(result.sent.taken, 2U);
  EXPECT_EQ(p.drops_a.of(Drop::kDatagramTooLong), 1U);
  receive_all(*p.b, p.at_b);
  EXPECT_THAT(p.at_b.texts(), ElementsAre("y"));
}

TEST(Exchange, CountsWhatADeadPeerLeftUnread) {
  TwoProcesses p;
  const auto slot = p.b->slot();
  p.a->send(slot, Batch({"read"}).get(), {});
  receive_all(*p.b, p.at_b);
  p.a->send(slot, Batch({"unread", "unread", "unread"}).get(), {});
  p.b.reset();
  EXPECT_TRUE(is_readable(*p.a));
  p.a->serve();
  EXPECT_EQ(p.drops_a.of(Drop::kPeerGone), 3U);
  EXPECT_EQ(p.a->send(slot, Batch({"x"}).get(), {}).reach, Reach::kAbsent);
}

TEST(Exchange, ReceivesWhatADeadSenderCommittedAndThenForgetsIt) {
  Drops drops;
  Recorder recorder;
  const auto b = open_exchange(drops);
  const auto before = testing::open_descriptors();
  auto a = open_exchange(drops);
  a->send(b->slot(), Batch({"last", "words"}).get(), {});
  a.reset();
  EXPECT_EQ(receive_all(*b, recorder), 2U);
  EXPECT_THAT(recorder.texts(), ElementsAre("last", "words"));
  EXPECT_EQ(receive_all(*b, recorder), 0U);
  EXPECT_EQ(testing::open_descriptors(), before);
  EXPECT_FALSE(is_readable(*b));
  EXPECT_EQ(drops.total(), 0U);
}

TEST(Exchange, ReachesASlotAgainAfterItWasClaimedAnew) {
  TwoProcesses p;
  const auto slot = p.b->slot();
  p.a->send(slot, Batch({"old"}).get(), {});
  p.b.reset();
  p.b = open_exchange(p.drops_b, slot.value() - 1U);
  ASSERT_EQ(p.b->slot(), slot);
  p.a->serve();
  const Instant later = Instant{} + std::chrono::seconds(1);
  EXPECT_EQ(p.a->send(slot, Batch({"new"}).get(), later).sent.taken, 1U);
  EXPECT_EQ(receive_all(*p.b, p.at_b), 1U);
  EXPECT_THAT(p.at_b.texts(), ElementsAre("new"));
}

TEST(Exchange, TakesFromManyThreadsAtOnce) {
  constexpr int kPerThread = 2000;
  TwoProcesses p;
  p.a->send(p.b->slot(), Batch({"hello"}).get(), {});
  auto sender = [&p](const std::string& text) {
    const Batch batch({text});
    for (int i = 0; i < kPerThread;) {
      if (p.a->send(p.b->slot(), batch.get(), {}).sent.taken == 1) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  };
  std::thread first(sender, "first");
  std::thread second(sender, std::string(300, '2'));
  std::thread server([&p] {
    for (int i = 0; i < 100; ++i) p.b->serve();
  });
  while (p.at_b.all.size() < 2 * kPerThread + 1) {
    if (p.b->receive(p.at_b, kAll) == 0) std::this_thread::yield();
  }
  first.join();
  second.join();
  server.join();
  const auto texts = p.at_b.texts();
  EXPECT_EQ(std::ranges::count(texts, "first"), kPerThread);
  EXPECT_EQ(std::ranges::count(texts, std::string(300, '2')), kPerThread);
}

}  // namespace
}  // namespace verbena::transport
