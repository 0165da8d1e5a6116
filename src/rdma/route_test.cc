// Against the kernel of the machine: only what holds on any.
#include "verbena/route.h"

#include <gtest/gtest.h>
#include <namespaces/own_namespace.h>
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

// The kernel would say that 10.99.0.1 is on the link of each interface that it is asked for.
TEST(Route, ThatNoTableHasIsNoneByAnInterfaceEither) {
  testing::in_own_namespace([] {
    testing::add_wire();
    const auto one = if_nametoindex("one");
    for (const char* there : {"10.9.0.7", "10.9.0.1", "fd09::7"}) {
      const Result<Route> route = look_up_route(*parse_gid(there), one);
      EXPECT_TRUE(route) << there << ": " << (route ? "" : route.error().message);
    }
    for (const char* nowhere : {"10.99.0.1", "fd99::1"}) {
      const Result<Route> route = look_up_route(*parse_gid(nowhere), one);
      ASSERT_FALSE(route) << nowhere;
      EXPECT_EQ(route.error().code, ErrorCode::kUnreachable);
      EXPECT_NE(route.error().message.find(" by one"), std::string::npos) << route.error().message;
    }
    testing::ip("route add default via 10.9.0.254 dev one");
    const Result<Route> route = look_up_route(*parse_gid("10.99.0.1"), one);
    ASSERT_TRUE(route) << route.error().message;
    EXPECT_EQ(route->gateway, *parse_gid("10.9.0.254"));
    EXPECT_EQ(route->source, *parse_gid("10.9.0.1"));
  });
}

}  // namespace
}  // namespace verbena
