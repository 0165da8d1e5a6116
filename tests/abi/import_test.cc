// Objects imported by descriptor and handle: within the process they are the same object twice; beyond it, refused.
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

class Import : public Rig {
 protected:
  Owned<ibv_context> import() {
    const int fd = ::dup(context_->cmd_fd);
    Owned<ibv_context> context(ibv_import_device(fd));
    ::close(fd);
    return context;
  }
  void expect_traffic() {
    auto qp = make_ready_qp();
    auto ah = make_ah();
    ASSERT_EQ(0, post_receive(qp.get(), 2));
    ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 64));
    for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
  }
};

TEST_F(Import, AContextIsTheSameDeviceTwice) {
  auto second = import();
  ASSERT_TRUE(second);
  EXPECT_NE(context_.get(), second.get());
  EXPECT_EQ(context_->device, second->device);
  EXPECT_NE(context_->cmd_fd, second->cmd_fd);
  Owned<ibv_pd> pd(ibv_alloc_pd(second.get()));
  ASSERT_TRUE(pd);
  EXPECT_EQ(second.get(), pd->context);
}

TEST_F(Import, ClosingOneLeavesTheOther) {
  auto second = import();
  ASSERT_TRUE(second);
  second.reset();
  expect_traffic();
}

TEST_F(Import, ADomainAndItsRegionsAreTheSameTwice) {
  auto second = import();
  ASSERT_TRUE(second);
  ibv_pd* const pd = ibv_import_pd(second.get(), pd_->handle);
  ASSERT_NE(nullptr, pd);
  EXPECT_EQ(pd_->handle, pd->handle);
  ibv_mr* const mr = ibv_import_mr(pd, mr_->handle);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(mr_->lkey, mr->lkey);
  EXPECT_EQ(mr_->rkey, mr->rkey);
  EXPECT_EQ(mr_->length, mr->length);
  EXPECT_EQ(pd, mr->pd);
  ibv_unimport_mr(mr);
  expect_traffic();  // the region is still registered
  ibv_unimport_pd(pd);
}

TEST_F(Import, DeviceMemoryIsTheSameBytes) {
  ibv_alloc_dm_attr attributes{.length = 64, .log_align_req = 0, .comp_mask = 0};
  Owned<ibv_dm> dm(ibv_alloc_dm(context_.get(), &attributes));
  ASSERT_TRUE(dm);
  auto second = import();
  ibv_dm* const again = ibv_import_dm(second.get(), dm->handle);
  ASSERT_NE(nullptr, again);
  ASSERT_EQ(0, ibv_memcpy_to_dm(dm.get(), 4, "verbena", 8));
  std::array<char, 8> got{};
  EXPECT_EQ(0, ibv_memcpy_from_dm(got.data(), again, 4, 8));
  EXPECT_STREQ("verbena", got.data());
  ibv_unimport_dm(again);
}

TEST_F(Import, WhatIsNotThereIsRefused) {
  const auto refused = [](const void* object, int error) { return object == nullptr && errno == error; };
  EXPECT_TRUE(refused(ibv_import_pd(context_.get(), 0xfffffff), EINVAL));
  EXPECT_TRUE(refused(ibv_import_mr(pd_.get(), 0xfffffff), EINVAL));
  EXPECT_TRUE(refused(ibv_import_dm(context_.get(), 0xfffffff), EINVAL));
  Owned<ibv_pd> other(ibv_alloc_pd(context_.get()));
  EXPECT_TRUE(refused(ibv_import_mr(other.get(), mr_->handle), EINVAL)) << "a region of another domain";
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), 64, 0));
  const std::uint32_t handle = mr->handle;
  mr.reset();
  EXPECT_TRUE(refused(ibv_import_mr(pd_.get(), handle), EINVAL)) << "a region that is gone";
}

TEST_F(Import, ADeviceOfAnotherProcessIsRefused) {
  // As another process would have passed its descriptor on.
  const int stranger = ::memfd_create("verbena-rnic", MFD_CLOEXEC);
  ASSERT_GE(stranger, 0);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_import_device(stranger));
  EXPECT_EQ(EOPNOTSUPP, errno);
  ::close(stranger);
}

}  // namespace
}  // namespace verbena::abi
