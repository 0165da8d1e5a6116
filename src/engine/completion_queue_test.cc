#include "engine/completion_queue.h"

#include <array>
#include <cerrno>

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

using Arm = CompletionQueue::Arm;

Completion completion(std::uint64_t wr_id, std::uint32_t qpn = 1) {
  Completion made;
  made.wr_id = wr_id;
  made.qp_number = qpn;
  return made;
}

std::vector<std::uint64_t> drain(CompletionQueue& queue) {
  std::vector<std::uint64_t> ids;
  Completion one;
  while (queue.poll({&one, 1}) != 0) ids.push_back(one.wr_id);
  return ids;
}

TEST(CompletionQueue, GivesCompletionsInOrderAndInBatches) {
  CompletionQueue queue(5);
  for (std::uint64_t id = 0; id < 5; ++id) EXPECT_TRUE(queue.push(completion(id)).stored);
  std::array<Completion, 3> batch;
  EXPECT_EQ(queue.poll(batch), 3U);
  EXPECT_EQ(batch[2].wr_id, 2U);
  EXPECT_EQ(queue.poll(batch), 2U);
  EXPECT_EQ(batch[1].wr_id, 4U);
  EXPECT_EQ(queue.poll(batch), 0U);
}

TEST(CompletionQueue, LosesWhatDoesNotFitAndRemembersIt) {
  CompletionQueue queue(2);
  queue.push(completion(0));
  queue.push(completion(1));
  EXPECT_FALSE(queue.overrun());
  queue.arm(Arm::kAny);
  const auto lost = queue.push(completion(2));
  EXPECT_FALSE(lost.stored);
  EXPECT_FALSE(lost.notify);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_TRUE(queue.overrun());
}

TEST(CompletionQueue, TakesNothingMoreAfterAnOverrun) {
  CompletionQueue queue(1);
  queue.push(completion(0));
  queue.push(completion(1));
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{0}));
  queue.arm(Arm::kAny);
  const auto later = queue.push(completion(2));
  EXPECT_FALSE(later.stored);
  EXPECT_FALSE(later.notify);
  EXPECT_TRUE(queue.empty());
  const Status resized = queue.resize(8);
  ASSERT_FALSE(resized);
  EXPECT_EQ(resized.error().system_errno, EINVAL);
}

struct WakeCase {
  Arm arm;
  bool solicited;
  WcStatus status;
  bool wakes;
};

TEST(CompletionQueue, WakesByTheRuleOfItsArming) {
  for (const WakeCase& c : {
           WakeCase{Arm::kNone, true, WcStatus::kFlushError, false},
           WakeCase{Arm::kAny, false, WcStatus::kSuccess, true},
           WakeCase{Arm::kSolicited, false, WcStatus::kSuccess, false},
           WakeCase{Arm::kSolicited, true, WcStatus::kSuccess, true},
           WakeCase{Arm::kSolicited, false, WcStatus::kFlushError, true},
       }) {
    CompletionQueue queue(4);
    queue.arm(c.arm);
    Completion made = completion(1);
    made.solicited = c.solicited;
    made.status = c.status;
    EXPECT_EQ(queue.push(made).notify, c.wakes);
    EXPECT_FALSE(c.wakes && queue.push(made).notify) << "one shot";
  }
}

TEST(CompletionQueue, StaysArmedUntilASolicitedCompletionComes) {
  CompletionQueue queue(4);
  queue.arm(Arm::kSolicited);
  EXPECT_FALSE(queue.push(completion(1)).notify);
  Completion solicited = completion(2);
  solicited.solicited = true;
  EXPECT_TRUE(queue.push(solicited).notify);
}

TEST(CompletionQueue, ArmedForAnyIsNotWeakened) {
  CompletionQueue queue(4);
  queue.arm(Arm::kAny);
  queue.arm(Arm::kSolicited);
  EXPECT_TRUE(queue.push(completion(1)).notify);
}

TEST(CompletionQueue, ResizeKeepsWhatIsPending) {
  CompletionQueue queue(4);
  for (std::uint64_t id = 0; id < 3; ++id) queue.push(completion(id));
  const Status refused = queue.resize(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EINVAL);
  EXPECT_FALSE(queue.resize(0));
  ASSERT_TRUE(queue.resize(3));
  EXPECT_EQ(queue.capacity(), 3U);
  ASSERT_TRUE(queue.resize(100));
  EXPECT_TRUE(queue.push(completion(3)).stored);
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(CompletionQueue, RemovesThoseOfOneQueuePairInPlace) {
  CompletionQueue queue(6);
  for (std::uint64_t id = 0; id < 6; ++id) queue.push(completion(id, id % 3 == 0 ? 7 : 8));
  queue.remove_of(Qpn(7));
  EXPECT_EQ(drain(queue), (std::vector<std::uint64_t>{1, 2, 4, 5}));
}

TEST(CompletionQueue, ModerationWakesAfterSoMany) {
  CompletionQueue queue(16);
  queue.moderate(3, false);
  queue.arm(CompletionQueue::Arm::kAny);
  for (int i = 1; i <= 6; ++i) {
    const auto pushed = queue.push(Completion{});
    EXPECT_EQ(pushed.notify, i == 3) << i;
    EXPECT_FALSE(pushed.delayed) << "no period is set";
  }
  queue.arm(CompletionQueue::Arm::kAny);
  EXPECT_FALSE(queue.push(Completion{}).notify);
  queue.moderate(1, false);
  EXPECT_TRUE(queue.push(Completion{}).notify);
}

TEST(CompletionQueue, ModerationWakesWhenThePeriodIsOver) {
  CompletionQueue queue(16);
  queue.moderate(3, true);
  EXPECT_FALSE(queue.on_period_over());
  EXPECT_FALSE(queue.push(Completion{}).delayed) << "not armed";
  queue.arm(CompletionQueue::Arm::kAny);
  EXPECT_FALSE(queue.on_period_over()) << "nothing came since";
  EXPECT_TRUE(queue.push(Completion{}).delayed);
  EXPECT_FALSE(queue.push(Completion{}).delayed) << "the period runs already";
  EXPECT_TRUE(queue.on_period_over());
  EXPECT_FALSE(queue.on_period_over()) << "once";
  EXPECT_FALSE(queue.push(Completion{}).notify) << "one shot";
  queue.moderate(0, true);
  queue.arm(CompletionQueue::Arm::kAny);
  EXPECT_TRUE(queue.push(Completion{}).delayed);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(queue.push(Completion{}).notify) << "the period alone";
  EXPECT_TRUE(queue.on_period_over());
}

TEST(CompletionQueue, StampsStayWithTheirCompletions) {
  CompletionQueue queue(4, {.stamped = true, .ignore_overrun = false});
  for (std::uint32_t i = 0; i < 4; ++i) {
    Completion completion;
    completion.qp_number = i % 2;
    completion.wr_id = i;
    queue.push(completion, {}, 100 + i);
  }
  queue.remove_of(Qpn(1));
  ASSERT_TRUE(queue.resize(2));
  Completion completion;
  std::uint64_t stamp = 0;
  ASSERT_TRUE(queue.poll_one(completion, stamp));
  EXPECT_EQ(completion.wr_id, 0U);
  EXPECT_EQ(stamp, 100U);
  queue.push(Completion{}, {}, 200);
  EXPECT_EQ(queue.poll({&completion, 1}), 1U);
  EXPECT_EQ(completion.wr_id, 2U);
  ASSERT_TRUE(queue.poll_one(completion, stamp));
  EXPECT_EQ(stamp, 200U) << "a plain poll takes the time out as well";
  EXPECT_FALSE(queue.poll_one(completion, stamp));
}

TEST(CompletionQueue, AnIgnoredOverrunLosesTheNewAndGivesItsPlaceBack) {
  CompletionQueue queue(1, {.stamped = false, .ignore_overrun = true});
  GivenBack given_back;
  EXPECT_TRUE(queue.push(Completion{}, {&given_back, 1}).stored);
  EXPECT_TRUE(queue.push(Completion{}, {&given_back, 2}).stored);
  EXPECT_FALSE(queue.overrun());
  EXPECT_EQ(given_back.position.load(), 2U);
  EXPECT_EQ(queue.size(), 1U);
}

}  // namespace
}  // namespace verbena::engine
