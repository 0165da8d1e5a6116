#include "engine/receive_queue.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "engine/shared_receive_queue.h"

namespace verbena::engine {
namespace {

constexpr std::array<Sge, 3> kPieces{{{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}}};

std::span<const Sge> pieces(std::size_t count) {
  return std::span(kPieces).first(count);
}

TEST(ReceiveQueue, KeepsOrderAndPiecesOverManyRounds) {
  ReceiveQueue queue(3, 3);
  std::uint64_t posted = 0;
  std::uint64_t taken = 0;
  for (int round = 0; round < 10; ++round) {
    while (queue.post(posted, pieces(posted % 4)) == 0) ++posted;
    EXPECT_EQ(queue.size(), 3U);
    for (int i = 0; i < 2; ++i, ++taken, queue.pop()) {
      const ReceiveRequest request = queue.front();
      EXPECT_EQ(request.wr_id, taken);
      ASSERT_EQ(request.sges.size(), taken % 4);
      EXPECT_EQ(request.length(), (std::array{0U, 10U, 30U, 60U})[taken % 4]);
    }
    EXPECT_EQ(queue.post(posted, {}), ENOMEM) << "what was popped keeps its place";
    queue.free(queue.popped());
  }
}

TEST(ReceiveQueue, RefusesWhatDoesNotFit) {
  ReceiveQueue queue(1, 2);
  EXPECT_EQ(queue.post(1, pieces(3)), EINVAL);
  EXPECT_EQ(queue.post(1, pieces(2)), 0);
  EXPECT_EQ(queue.post(2, pieces(2)), ENOMEM);
  EXPECT_EQ(queue.post(2, pieces(3)), EINVAL) << "a bad request is bad also where the queue is full";
  queue.clear();
  EXPECT_TRUE(queue.empty());
  queue.free(queue.popped());
  EXPECT_EQ(queue.post(2, pieces(0)), 0);
}

TEST(ReceiveQueue, OfNoCapacityTakesNothing) {
  ReceiveQueue queue(0, 0);
  EXPECT_EQ(queue.post(1, {}), ENOMEM);
  EXPECT_TRUE(queue.empty());
}

TEST(ReceiveQueue, NeverHasMorePiecesThanTheDevice) {
  EXPECT_EQ(ReceiveQueue(1, 1000).max_sge(), kMaxSge);
}

TEST(ReceiveQueue, LengthDoesNotOverflow) {
  ReceiveQueue queue(1, 2);
  const std::array<Sge, 2> huge{{{0, UINT32_MAX, 0}, {0, UINT32_MAX, 0}}};
  ASSERT_EQ(queue.post(1, huge), 0);
  EXPECT_EQ(queue.front().length(), 2ULL * UINT32_MAX);
}

TEST(SharedReceiveQueue, TakesTheOldestThatFitsOrNothing) {
  SharedReceiveQueue queue(4, 3);
  TakenReceive taken;
  EXPECT_EQ(queue.take(0, taken), Take::kEmpty);
  ASSERT_EQ(queue.post(1, pieces(1)), 0);
  ASSERT_EQ(queue.post(2, pieces(3)), 0);
  EXPECT_EQ(queue.take(11, taken), Take::kTooSmall);
  EXPECT_EQ(queue.size(), 2U) << "left where it is";
  EXPECT_EQ(queue.take(10, taken), Take::kTaken);
  EXPECT_EQ(taken.wr_id, 1U);
  EXPECT_EQ(queue.take(60, taken), Take::kTaken);
  ASSERT_EQ(taken.list().size(), 3U);
  EXPECT_EQ(taken.list()[2].lkey, 3U);
}

TEST(SharedReceiveQueue, TellsOnceThatFewerThanTheLimitAreLeft) {
  SharedReceiveQueue queue(4, 1);
  TakenReceive taken;
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(queue.post(id, {}), 0);
  ASSERT_TRUE(queue.set_limit(3));
  EXPECT_EQ(queue.take(0, taken), Take::kTaken);
  EXPECT_FALSE(queue.poll_limit_event()) << "three are not fewer than three";
  EXPECT_EQ(queue.limit(), 3U);
  EXPECT_EQ(queue.take(0, taken), Take::kTaken);
  EXPECT_TRUE(queue.poll_limit_event());
  EXPECT_FALSE(queue.poll_limit_event());
  EXPECT_EQ(queue.limit(), 0U);
  EXPECT_EQ(queue.take(0, taken), Take::kTaken);
  EXPECT_FALSE(queue.poll_limit_event());
}

TEST(SharedReceiveQueue, LimitAndSizeHoldEachOther) {
  SharedReceiveQueue queue(4, 1);
  EXPECT_FALSE(queue.set_limit(5));
  ASSERT_TRUE(queue.set_limit(4));
  EXPECT_FALSE(queue.resize(3));
  ASSERT_TRUE(queue.set_limit(1));
  ASSERT_EQ(queue.post(7, pieces(1)), 0);
  ASSERT_EQ(queue.post(8, pieces(1)), 0);
  EXPECT_FALSE(queue.resize(1));
  EXPECT_FALSE(queue.resize(0));
  ASSERT_TRUE(queue.resize(2));
  EXPECT_EQ(queue.post(9, {}), ENOMEM);
  ASSERT_TRUE(queue.resize(10));
  TakenReceive taken;
  EXPECT_EQ(queue.take(10, taken), Take::kTaken);
  EXPECT_EQ(taken.wr_id, 7U);
}

}  // namespace
}  // namespace verbena::engine
