#include "cli/link_local_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kLinks{"eth0", "eth1"};

TEST(LinkLocalScope, ALinkLocalAddressNeedsItsInterface) {
  const auto without = check_scope("fe80::1", kLinks);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(without.error().message, HasSubstr("fe80::1%eth0"));
  EXPECT_THAT(without.error().message, HasSubstr("eth1"));
  EXPECT_FALSE(check_scope("fe80::1", {}));
}

TEST(LinkLocalScope, TheInterfaceMustBeThere) {
  EXPECT_TRUE(check_scope("fe80::1%eth1", kLinks));
  EXPECT_TRUE(check_scope("fe80::1%2", kLinks)) << "an index";
  for (const char* wrong : {"fe80::1%eth7", "fe80::1%"}) {
    const auto checked = check_scope(wrong, kLinks);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_THAT(checked.error().message, HasSubstr("no interface")) << wrong;
  }
}

TEST(LinkLocalScope, NothingElseIsLookedAt) {
  for (const char* host : {"10.0.0.1", "169.254.1.1", "fd00::1", "::1", "node7", "node7%eth7", "", "%"}) {
    EXPECT_TRUE(check_scope(host, kLinks)) << host;
  }
}

}  // namespace
}  // namespace verbena::cli
