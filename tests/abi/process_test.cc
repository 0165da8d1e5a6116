// Forks and threads: a child may not use its parent's device, and address handles come and go from many threads.
#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

using Fork = Rig;

// Runs `body` in a child; its exit status is the number of failed expectations.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(child, ::waitpid(child, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(Fork, TheChildIsToldThatTheDeviceIsNotItsOwn) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  const int failed = in_child([&] {
    int wrong = 0;
    const auto expect = [&wrong](bool right) { wrong += right ? 0 : 1; };
    ibv_wc completion{};
    ibv_ah_attr attributes = address_of(gid_);
    expect(post_send(qp.get(), ah.get(), qp->qp_num, 8) == ENODEV);
    expect(post_receive(qp.get(), 1) == ENODEV);
    expect(ibv_poll_cq(cq_.get(), 1, &completion) == -ENODEV);
    expect(ibv_req_notify_cq(cq_.get(), 0) == ENODEV);
    expect(ibv_create_ah(pd_.get(), &attributes) == nullptr && errno == ENODEV);
    expect(ibv_destroy_ah(ah.get()) == ENODEV);
    expect(ibv_destroy_qp(qp.get()) == ENODEV);
    expect(to_state(qp.get(), IBV_QPS_ERR) == ENODEV);
    expect(ibv_alloc_pd(context_.get()) == nullptr && errno == ENODEV);
    expect(ibv_reg_mr(pd_.get(), memory_.data(), 8, 0) == nullptr && errno == ENODEV);
    errno = 0;
    expect(ibv_close_device(context_.get()) == ENODEV && errno == ENODEV);
    errno = 0;
    expect(ibv_dealloc_pd(pd_.get()) == ENODEV && errno == ENODEV);
    return wrong;
  });
  EXPECT_EQ(0, failed);
  // The parent goes on.
  ASSERT_EQ(0, post_receive(qp.get(), 1));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
}

TEST_F(Fork, TheChildMayOpenTheDeviceAgain) {
  EXPECT_EQ(0, in_child([] {
              auto context = open_first_device();
              if (!context) return 1;
              Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
              Owned<ibv_cq> cq(ibv_create_cq(context.get(), 8, nullptr, nullptr, 0));
              ibv_qp_init_attr attributes = ud_attributes(cq.get());
              Owned<ibv_qp> qp(ibv_create_qp(pd.get(), &attributes));
              return qp ? 0 : 2;
            }));
}

TEST_F(Rig, AddressHandlesComeAndGoFromManyThreads) {
  constexpr int kThreads = 128;
  constexpr int kHandles = 128;
  constexpr int kRounds = VERBENA_AH_ROUNDS;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &failures] {
      ibv_pd* const pd = ibv_alloc_pd(context_.get());
      if (pd == nullptr) {
        ++failures;
        return;
      }
      ibv_ah_attr attributes = address_of(gid_);
      std::array<ibv_ah*, kHandles> handles{};
      for (int round = 0; round < kRounds; ++round) {
        for (ibv_ah*& ah : handles) ah = ibv_create_ah(pd, &attributes);
        for (ibv_ah* const ah : handles) {
          if (ah == nullptr || ibv_destroy_ah(ah) != 0) ++failures;
        }
      }
      if (ibv_dealloc_pd(pd) != 0) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, failures);
}

TEST(Programs, ADeviceOpensAndClosesAgainAndAgain) {
  for (int i = 0; i < 20; ++i) {
    auto first = open_first_device();
    auto second = open_first_device();
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
  }
}

}  // namespace
}  // namespace verbena::abi
