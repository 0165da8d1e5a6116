#include "device/srq_table.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

TEST(SrqTable, NumbersLieInTheSlotAndAreFoundWhilePublished) {
  SrqTable table;
  table.set_slot(Slot(9));
  EXPECT_EQ(table.find(Qpn(Slot(9), 16)), nullptr);
  const auto srqn = table.reserve();
  ASSERT_TRUE(srqn);
  EXPECT_EQ(srqn->slot(), Slot(9));
  EXPECT_EQ(table.find(*srqn), nullptr);
  auto& queue = *reinterpret_cast<SharedReceiveQueue*>(0x1000);  // never looked into
  table.publish(*srqn, queue);
  EXPECT_EQ(table.find(*srqn), &queue);
  EXPECT_EQ(table.find(Qpn(Slot(8), srqn->index())), nullptr);
  table.unpublish(*srqn);
  EXPECT_EQ(table.find(*srqn), nullptr);
}

TEST(SrqTable, IsFullAtTheEndOfItsSlot) {
  SrqTable table;
  table.set_slot(Slot(9));
  while (table.reserve()) continue;
  const auto none = table.reserve();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().system_errno, ENOMEM);
  table.release(Qpn(Slot(9), 1000));
  EXPECT_EQ(*table.reserve(), Qpn(Slot(9), 1000));
}

}  // namespace
}  // namespace verbena::device
