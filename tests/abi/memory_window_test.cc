// Memory windows as objects: what they are filled with, what keeps what alive, what is refused.
#include "rig.h"

namespace verbena::abi {
namespace {

using MemoryWindows = Rig;

TEST_F(MemoryWindows, AreFilledAndHaveAKeyOfTheirOwn) {
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    Owned<ibv_mw> mw(ibv_alloc_mw(pd_.get(), type));
    ASSERT_TRUE(mw);
    EXPECT_EQ(context_.get(), mw->context);
    EXPECT_EQ(pd_.get(), mw->pd);
    EXPECT_EQ(type, mw->type);
    EXPECT_NE(0u, mw->rkey);
    EXPECT_NE(mr_->rkey >> 8, mw->rkey >> 8);
  }
  errno = 0;
  EXPECT_EQ(nullptr, ibv_alloc_mw(pd_.get(), static_cast<ibv_mw_type>(3)));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(MemoryWindows, TheDeviceTellsThatItHasThem) {
  ibv_device_attr attributes{};
  ASSERT_EQ(0, ibv_query_device(context_.get(), &attributes));
  EXPECT_GT(attributes.max_mw, 0);
  EXPECT_NE(0u, attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
  EXPECT_NE(0u, attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

TEST_F(MemoryWindows, KeepTheirDomainBusy) {
  Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
  ASSERT_TRUE(pd);
  Owned<ibv_mw> mw(ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2));
  ASSERT_TRUE(mw);
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
}

TEST_F(MemoryWindows, AWrongHandleNamesNothing) {
  Owned<ibv_mw> mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1));
  ASSERT_TRUE(mw);
  const std::uint32_t handle = mw->handle;
  mw->handle = handle + 1000;
  EXPECT_EQ(ENOENT, ibv_dealloc_mw(mw.get()));
  mw->handle = handle;
}

TEST_F(MemoryWindows, ADatagramQueuePairBindsNone) {
  auto qp = make_ready_qp();
  ASSERT_TRUE(qp);
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
  ASSERT_TRUE(mr);
  Owned<ibv_mw> mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1));
  ASSERT_TRUE(mw);
  ibv_mw_bind bind{};
  bind.bind_info = {mr.get(), reinterpret_cast<std::uint64_t>(memory_.data()), 64, IBV_ACCESS_REMOTE_READ};
  const std::uint32_t key = mw->rkey;
  EXPECT_EQ(EINVAL, ibv_bind_mw(qp.get(), mw.get(), &bind));
  EXPECT_EQ(key, mw->rkey);
  bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
  EXPECT_EQ(EINVAL, ibv_bind_mw(qp.get(), mw.get(), &bind));
}

}  // namespace
}  // namespace verbena::abi
