// Against the kernel of the machine: only what holds on any.
#include "verbena/route.h"

#include <gtest/gtest.h>
#include <net/if.h>

namespace verbena {
namespace {

TEST(Route, LoopbackIsLocal) {
  const Result<Route> route = look_up_route(*parse_gid("127.0.0.1"), 0);
  ASSERT_TRUE(route) << route.error().message;
  EXPECT_TRUE(route->local);
  EXPECT_EQ(route->netdev, if_nametoindex("lo"));
  EXPECT_EQ(route->source, *parse_gid("127.0.0.1"));
}

TEST(Route, AForeignLoopbackAddressIsLocalToo) {
  const Result<Route> route = look_up_route(*parse_gid("127.9.9.9"), 0);
  ASSERT_TRUE(route) << route.error().message;
  EXPECT_TRUE(route->local);
}

TEST(Route, ByAnInterfaceThatIsNotThereIsUnreachable) {
  const Result<Route> route = look_up_route(*parse_gid("192.0.2.1"), 999999);
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().code, ErrorCode::kUnreachable);
}

}  // namespace
}  // namespace verbena
