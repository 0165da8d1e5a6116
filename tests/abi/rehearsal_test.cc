// What VERBENA_LIMITS, VERBENA_INJECT and VERBENA_STRICT do to a program.
#include <chrono>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>

#include "rig.h"

namespace verbena::abi {
namespace {

class Rehearsal : public Rig {
 protected:
  // Read at the first verbs call of the process.
  static void SetUpTestSuite() {
    ::setenv("VERBENA_LIMITS", "max_ah=8,max_qp=2", 1);
    ::setenv("VERBENA_INJECT", "create_ah.delay=2ms..3ms,create_cq.fail=ENOSPC,create_cq.after=1,create_cq.times=1", 1);
    ::setenv("VERBENA_STRICT", "on", 1);
  }
};

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST_F(Rehearsal, ALoweredLimitIsToldAndKept) {
  ibv_device_attr attributes{};
  ASSERT_EQ(0, ibv_query_device(context_.get(), &attributes));
  EXPECT_EQ(8, attributes.max_ah);
  EXPECT_EQ(2, attributes.max_qp);
  std::vector<Owned<ibv_ah>> held;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(held.emplace_back(make_ah()));
  errno = 0;
  EXPECT_FALSE(make_ah());
  EXPECT_EQ(ENOMEM, errno);
  held.pop_back();
  EXPECT_TRUE(make_ah()) << "one was given back";
}

TEST_F(Rehearsal, ACallIsSlowAsAsked) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(make_ah());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
}

TEST_F(Rehearsal, ACallFailsWhenAskedAndAtNoOtherTime) {
  // The first one was the rig's.
  errno = 0;
  EXPECT_FALSE(Owned<ibv_cq>(ibv_create_cq(context_.get(), 8, nullptr, nullptr, 0)));
  EXPECT_EQ(ENOSPC, errno);
  EXPECT_TRUE(Owned<ibv_cq>(ibv_create_cq(context_.get(), 8, nullptr, nullptr, 0)));
}

TEST_F(Rehearsal, AnAddressHandleThatIsDestroyedTooEarlyIsNamed) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
  CaptureStderr();
  ah.reset();
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("address handle to ::ffff:127.0.0.1 was destroyed while 1 posted send"));
  take_completions(cq_.get(), 1);
}

TEST_F(Rehearsal, AnAddressHandleThatTwoQueuePairsNameIsCountedOnceAndForgottenByBoth) {
  auto first = make_ready_qp();
  auto second = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_send(first.get(), ah.get(), first->qp_num, 8));
  ASSERT_EQ(0, post_send(second.get(), ah.get(), second->qp_num, 8));
  CaptureStderr();
  ah.reset();
  const std::string said = GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("1 posted send(s) of queue pair"));
  EXPECT_THAT(said, HasSubstr(" and 1 posted send(s) of queue pair"));
  EXPECT_EQ(said.find("was destroyed"), said.rfind("was destroyed")) << said;
  CaptureStderr();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(make_ah());  // one at the same place in memory is likely among them
  EXPECT_THAT(GetCapturedStderr(), IsEmpty());
  take_completions(cq_.get(), 2);
}

TEST_F(Rehearsal, AnAddressHandleWhoseSendsWerePolledMayGo) {
  auto qp = make_ready_qp();
  auto first = make_ah();
  auto second = make_ah();
  CaptureStderr();
  ASSERT_EQ(0, post_send(qp.get(), first.get(), qp->qp_num, 8));
  ASSERT_EQ(0, post_send(qp.get(), second.get(), qp->qp_num, 8));
  take_completions(cq_.get(), 1);
  first.reset();
  take_completions(cq_.get(), 1);
  second.reset();
  auto third = make_ah();
  ASSERT_EQ(0, post_send(qp.get(), third.get(), qp->qp_num, 8));
  qp.reset();
  third.reset();
  EXPECT_THAT(GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace verbena::abi
