#include "device/qp_table.h"

#include <set>

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

TEST(QpTable, GivesEachNumberOnceAndAFreedOneLast) {
  QpTable table;
  table.add_slot(Slot(7));
  Qpn first;
  ASSERT_TRUE(table.reserve(first));
  EXPECT_EQ(first, Qpn(Slot(7), QpTable::kFirstIndex));
  table.release(first);
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < Qpn::kPerSlot - QpTable::kFirstIndex; ++i) {
    Qpn qpn;
    ASSERT_TRUE(table.reserve(qpn));
    EXPECT_EQ(qpn.slot(), Slot(7));
    EXPECT_TRUE(seen.insert(qpn.value()).second) << qpn.value();
    if (i == 0) {
      EXPECT_NE(qpn, first);
    }
  }
  Qpn none;
  EXPECT_FALSE(table.reserve(none));
  table.add_slot(Slot(8));
  ASSERT_TRUE(table.reserve(none));
  EXPECT_EQ(none.slot(), Slot(8));
}

TEST(QpTable, FindsWhatIsPublishedAndNothingElse) {
  QpTable table;
  table.add_slot(Slot(1));
  Qpn qpn;
  ASSERT_TRUE(table.reserve(qpn));
  EXPECT_EQ(table.find(qpn), nullptr);
  int stands_for_one = 0;
  auto& queue_pair = reinterpret_cast<QueuePair&>(stands_for_one);
  table.publish(qpn, queue_pair);
  EXPECT_EQ(table.find(qpn), &queue_pair);
  EXPECT_EQ(table.find(Qpn(Slot(2), qpn.index())), nullptr);
  table.unpublish(qpn);
  EXPECT_EQ(table.find(qpn), nullptr);
}

}  // namespace
}  // namespace verbena::device
