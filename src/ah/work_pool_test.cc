#include "ah/work_pool.h"

#include <chrono>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::ah {
namespace {

// One thread, held until everything is queued: the order is then the pool's choice.
std::string order_of(const std::vector<std::pair<Lane, char>>& queued) {
  WorkPool pool(1);
  std::latch begun(1);
  std::latch go(1);
  std::latch done(static_cast<std::ptrdiff_t>(queued.size()));
  std::string order;
  pool.submit(Lane::kFirst, [&] {
    begun.count_down();
    go.wait();
  });
  begun.wait();
  for (const auto& [lane, name] : queued) {
    pool.submit(lane, [&, letter = name] {
      order += letter;
      done.count_down();
    });
  }
  go.count_down();
  done.wait();
  return order;
}

TEST(WorkPool, TakesTheUrgentBeforeAll) {
  EXPECT_EQ(order_of({{Lane::kFirst, 'a'}, {Lane::kLater, 'l'}, {Lane::kUrgent, 'u'}}), "ual");
}

TEST(WorkPool, ReplacementsAndCreationsTakeTurns) {
  EXPECT_EQ(order_of({{Lane::kFirst, 'a'}, {Lane::kFirst, 'b'}, {Lane::kReplace, 'r'}, {Lane::kReplace, 's'}}), "rasb");
}

TEST(WorkPool, WhatFailedBeforeComesLast) {
  EXPECT_EQ(order_of({{Lane::kLater, 'l'}, {Lane::kFirst, 'a'}, {Lane::kReplace, 'r'}, {Lane::kFirst, 'b'}}), "rabl");
}

TEST(WorkPool, WhatFailedBeforeHasItsTurnsWithinAStream) {
  std::vector<std::pair<Lane, char>> queued{{Lane::kLater, 'l'}, {Lane::kLater, 'm'}, {Lane::kRestore, 's'}};
  for (int i = 0; i < 40; ++i) queued.emplace_back(i % 2 == 0 ? Lane::kFirst : Lane::kReplace, 'x');
  const std::string order = order_of(queued);
  EXPECT_EQ(order.find('s'), 8U) << order;
  EXPECT_EQ(order.find('l'), 17U) << order;
  EXPECT_EQ(order.find('m'), 26U) << order;
}

// Of four threads dead peers hold two; replacements go on whatever is asked for first, and whatever hangs.
TEST(WorkPool, WhatFailedBeforeHoldsUpNoReplacement) {
  WorkPool pool(4);
  std::latch go(1);
  std::latch begun(2);
  std::latch replaced(20);
  std::latch created(20);
  for (int i = 0; i < 10; ++i) {
    pool.submit(i % 2 == 0 ? Lane::kRestore : Lane::kLater, [&] {
      if (!begun.try_wait()) begun.count_down();
      go.wait();
    });
  }
  begun.wait();
  for (int i = 0; i < 20; ++i) {
    pool.submit(Lane::kReplace, [&] { replaced.count_down(); });
    pool.submit(Lane::kFirst, [&] { created.count_down(); });
  }
  replaced.wait();
  created.wait();
  go.count_down();
}

TEST(WorkPool, ReplacementsThatHangLeaveAThreadToWhatIsNew) {
  WorkPool pool(4);
  std::latch go(1);
  std::latch created(20);
  for (int i = 0; i < 10; ++i) pool.submit(i % 2 == 0 ? Lane::kReplace : Lane::kRestore, [&] { go.wait(); });
  for (int i = 0; i < 20; ++i) pool.submit(Lane::kFirst, [&] { created.count_down(); });
  created.wait();
  go.count_down();
}

TEST(WorkPool, WhatIsNotDueHoldsNoThread) {
  WorkPool pool(1);
  std::string order;  // of the one thread, and read when it has told
  std::latch has_a(1);
  std::latch has_d(1);
  pool.submit_at(Deadline::Clock::now() + std::chrono::hours(1), Lane::kUrgent, [&] { order += 'x'; });
  pool.submit(Lane::kLater, [&] {
    order += 'a';
    has_a.count_down();
  });
  has_a.wait();
  const auto due = Deadline::Clock::now() + std::chrono::milliseconds(1);
  pool.submit_at(due, Lane::kUrgent, [&] {
    order += 'd';
    has_d.count_down();
  });
  has_d.wait();
  EXPECT_GE(Deadline::Clock::now(), due);
  EXPECT_EQ(order, "ad");
}

}  // namespace
}  // namespace verbena::ah
