#include "engine/multicast_table.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

const Gid kGroup = *parse_gid("224.1.2.3");
const Gid kOther = *parse_gid("ff0e::1");

TEST(MulticastTable, NamesTheMembersOfAGroup) {
  MulticastTable table;
  EXPECT_TRUE(table.members(kGroup).empty());
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  ASSERT_TRUE(table.attach(kGroup, Qpn(2)));
  ASSERT_TRUE(table.attach(kOther, Qpn(2)));
  EXPECT_EQ(table.members(kGroup).size(), 2U);
  EXPECT_EQ(table.members(kOther).size(), 1U);
  EXPECT_TRUE(table.is_attached(Qpn(1)));
  EXPECT_FALSE(table.is_attached(Qpn(3)));
}

TEST(MulticastTable, AttachingTwiceIsAttachingOnce) {
  MulticastTable table;
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  EXPECT_EQ(table.members(kGroup).size(), 1U);
  ASSERT_TRUE(table.detach(kGroup, Qpn(1)));
  EXPECT_FALSE(table.is_attached(Qpn(1)));
  EXPECT_TRUE(table.members(kGroup).empty());
}

TEST(MulticastTable, DetachingWhatIsNotAttachedIsRefused) {
  MulticastTable table;
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  for (const Status& status : {table.detach(kGroup, Qpn(2)), table.detach(kOther, Qpn(1))}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().system_errno, EINVAL);
  }
}

TEST(MulticastTable, TakesOnlyGroups) {
  MulticastTable table;
  for (const char* text : {"10.0.0.1", "fd00::1", "::", "240.0.0.1"}) {
    const Status status = table.attach(*parse_gid(text), Qpn(1));
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().system_errno, EINVAL);
  }
}

TEST(MulticastTable, StopsAtEachLimit) {
  Limits limits;
  limits.max_multicast_groups = 2;
  limits.max_queue_pairs_per_group = 2;
  limits.max_multicast_attachments = 3;
  MulticastTable table(limits);
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  ASSERT_TRUE(table.attach(kGroup, Qpn(2)));
  const Status per_group = table.attach(kGroup, Qpn(3));
  ASSERT_FALSE(per_group);
  EXPECT_EQ(per_group.error().system_errno, ENOMEM);
  EXPECT_TRUE(table.attach(kGroup, Qpn(2))) << "already in";
  ASSERT_TRUE(table.attach(kOther, Qpn(1)));
  EXPECT_FALSE(table.attach(*parse_gid("ff0e::2"), Qpn(1))) << "groups";
  EXPECT_FALSE(table.attach(kOther, Qpn(2))) << "attachments";
  ASSERT_TRUE(table.detach(kGroup, Qpn(1)));
  EXPECT_TRUE(table.attach(kOther, Qpn(2)));
}

TEST(MulticastTable, ACopyIsASnapshot) {
  MulticastTable table;
  ASSERT_TRUE(table.attach(kGroup, Qpn(1)));
  const MulticastTable snapshot = table;
  ASSERT_TRUE(table.detach(kGroup, Qpn(1)));
  EXPECT_EQ(snapshot.members(kGroup).size(), 1U);
}

}  // namespace
}  // namespace verbena::engine
