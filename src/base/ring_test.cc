#include "base/ring.h"

#include <gtest/gtest.h>

#include "base/psn.h"

namespace verbena {
namespace {

TEST(Ring, HoldsExactlyItsCapacityInOrder) {
  Ring<int> ring(3);
  EXPECT_TRUE(ring.push(1));
  EXPECT_TRUE(ring.push(2));
  EXPECT_TRUE(ring.push(3));
  EXPECT_FALSE(ring.push(4));
  EXPECT_EQ(ring[2], 3);
  ring.pop();
  EXPECT_TRUE(ring.push(4));
  for (int expected = 2; expected <= 4; ++expected, ring.pop()) EXPECT_EQ(ring.front(), expected);
  EXPECT_TRUE(ring.empty());
}

TEST(Psn, ComparesOnTheCircle) {
  EXPECT_EQ(Psn(2).distance_from(Psn(0xfffffe)), 4);
  EXPECT_EQ(Psn(0xfffffe).distance_from(Psn(2)), -4);
  EXPECT_EQ((Psn(0xffffff) + 1).value(), 0U);
}

}  // namespace
}  // namespace verbena
