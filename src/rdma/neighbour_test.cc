#include "verbena/neighbour.h"

#include <string>

#include <gtest/gtest.h>
#include <namespaces/own_namespace.h>
#include <net/if.h>

namespace verbena {
namespace {

using testing::add_wire;
using testing::in_own_namespace;
using testing::ip;

TEST(Neighbour, IsWhatTheTableHas) {
  in_own_namespace([] {
    add_wire();
    const std::uint32_t one = if_nametoindex("one");
    for (const char* address : {"10.9.0.2", "fd09::2", "fe80::2"}) {
      const auto look_up = [&] {
        const auto found = look_up_neighbour(*parse_gid(address), one);
        EXPECT_TRUE(found) << found.error().message;
        return found ? *found : std::nullopt;
      };
      const std::string neighbour = std::string("neigh replace ") + address + " dev one ";
      EXPECT_EQ(look_up(), std::nullopt);
      for (const char* state : {"permanent", "reachable", "stale", "delay", "probe"}) {
        ip(neighbour + "lladdr 02:00:00:00:00:01 nud " + state);
        EXPECT_EQ(look_up(), (MacAddress{2, 0, 0, 0, 0, 1})) << state;
      }
      ip(neighbour + "lladdr 02:00:00:00:00:09 nud permanent");
      EXPECT_EQ(look_up(), (MacAddress{2, 0, 0, 0, 0, 9}));
      EXPECT_FALSE(*look_up_neighbour(*parse_gid(address), if_nametoindex("other"))) << "of another interface";
      ip(neighbour + "nud failed");
      EXPECT_EQ(look_up(), std::nullopt) << "failed";
      ip(std::string("neigh del ") + address + " dev one");
      EXPECT_EQ(look_up(), std::nullopt) << "gone";
    }
  });
}

// Asking makes no entry, and so no question on the network.
TEST(Neighbour, AskingMakesNoEntry) {
  in_own_namespace([] {
    add_wire();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(*look_up_neighbour(*parse_gid("10.9.0.2"), if_nametoindex("one")));
    EXPECT_NE(std::system("ip neigh show | grep -q 10.9.0.2"), 0);
  });
}

TEST(Neighbour, WithoutItsInterfaceIsRefusedInWords) {
  const auto none = look_up_neighbour(*parse_gid("10.9.0.2"), 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  const auto gone = look_up_neighbour(*parse_gid("10.9.0.2"), 999999);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message.find("999999"), std::string::npos);
}

}  // namespace
}  // namespace verbena
