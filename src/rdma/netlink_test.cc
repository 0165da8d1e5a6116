#include "rdma/netlink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::rdma {
namespace {

// The kernel answers no message without a meaning, unless it is asked to.
TEST(Netlink, AQuestionWithoutAnAnswerReachesNoLimit) {
  const auto answer = ask_kernel(NETLINK_ROUTE, NetlinkRequest(NLMSG_NOOP), "nothing", std::chrono::milliseconds(10));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable) << answer.error().message;
  EXPECT_THAT(answer.error().message, ::testing::HasSubstr("did not answer the question for nothing"));
}

}  // namespace
}  // namespace verbena::rdma
