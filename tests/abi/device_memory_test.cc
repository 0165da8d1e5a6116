// Device memory: taken, copied to and from, registered, sent from and received into.
#include "rig.h"

namespace verbena::abi {
namespace {

class DeviceMemory : public Rig {
 protected:
  Owned<ibv_dm> allocate(std::size_t length, std::uint32_t log_alignment = 0) {
    ibv_alloc_dm_attr attributes{.length = length, .log_align_req = log_alignment, .comp_mask = 0};
    errno = 0;
    return Owned<ibv_dm>(ibv_alloc_dm(context_.get(), &attributes));
  }
  std::size_t most() {
    ibv_device_attr_ex attributes{};
    EXPECT_EQ(0, ibv_query_device_ex(context_.get(), nullptr, &attributes));
    return attributes.max_dm_size;
  }
};

TEST_F(DeviceMemory, IsCopiedToAndFromWithinItsBounds) {
  auto dm = allocate(100);
  ASSERT_TRUE(dm);
  EXPECT_EQ(context_.get(), dm->context);
  std::array<char, 8> got{};
  EXPECT_EQ(0, ibv_memcpy_from_dm(got.data(), dm.get(), 92, 8));
  EXPECT_EQ(got, (std::array<char, 8>{})) << "zeros at first";
  EXPECT_EQ(0, ibv_memcpy_to_dm(dm.get(), 88, "verbena", 8));
  EXPECT_EQ(0, ibv_memcpy_from_dm(got.data(), dm.get(), 88, 8));
  EXPECT_STREQ("verbena", got.data());
  EXPECT_EQ(EFAULT, ibv_memcpy_to_dm(dm.get(), 96, "verbena", 8));
  EXPECT_EQ(EFAULT, ibv_memcpy_from_dm(got.data(), dm.get(), 104, 0));
  EXPECT_EQ(EFAULT, ibv_memcpy_from_dm(got.data(), dm.get(), UINT64_MAX - 3, 8));
  EXPECT_EQ(EINVAL, ibv_memcpy_to_dm(dm.get(), 2, "verbena", 8)) << "words only";
  EXPECT_EQ(EINVAL, ibv_memcpy_from_dm(got.data(), dm.get(), 4, 7));
}

TEST_F(DeviceMemory, IsSentFromAndReceivedInto) {
  auto dm = allocate(512, 6);
  ASSERT_TRUE(dm);
  constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
  Owned<ibv_mr> from(ibv_reg_dm_mr(pd_.get(), dm.get(), 64, 64, kAccess));
  Owned<ibv_mr> to(ibv_reg_dm_mr(pd_.get(), dm.get(), 256, 256, kAccess));
  ASSERT_TRUE(from && to);
  EXPECT_EQ(64u, from->length);
  EXPECT_EQ(EBUSY, ibv_free_dm(dm.get()));
  ASSERT_EQ(0, ibv_memcpy_to_dm(dm.get(), 64 + 8, "verbena", 8));
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_sge room{0, 256, to->lkey};
  ibv_recv_wr receive{.wr_id = 2, .next = nullptr, .sg_list = &room, .num_sge = 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp.get(), &receive, &bad_receive));
  ibv_sge piece{8, 8, from->lkey};
  ibv_send_wr request = send_request(&piece, ah.get(), qp->qp_num);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
  std::array<char, 8> got{};
  EXPECT_EQ(0, ibv_memcpy_from_dm(got.data(), dm.get(), 256 + kGrh, 8));
  EXPECT_STREQ("verbena", got.data());
}

TEST_F(DeviceMemory, WrongWishesAreRefused) {
  auto dm = allocate(100);
  ASSERT_TRUE(dm);
  const auto refused = [&](std::uint64_t offset, std::size_t length, unsigned access) {
    errno = 0;
    return Owned<ibv_mr>(ibv_reg_dm_mr(pd_.get(), dm.get(), offset, length, access)) == nullptr && errno == EINVAL;
  };
  EXPECT_TRUE(refused(0, 100, IBV_ACCESS_LOCAL_WRITE)) << "not zero-based";
  EXPECT_TRUE(refused(1, 100, IBV_ACCESS_ZERO_BASED));
  EXPECT_TRUE(refused(UINT64_MAX, 2, IBV_ACCESS_ZERO_BASED));
  EXPECT_TRUE(refused(0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND));
  EXPECT_TRUE(refused(0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE));
  EXPECT_FALSE(allocate(0));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_FALSE(allocate(8, 31));
  EXPECT_EQ(EINVAL, errno);
  Owned<ibv_mr> mr(ibv_reg_dm_mr(pd_.get(), dm.get(), 0, 100, IBV_ACCESS_ZERO_BASED));
  ASSERT_TRUE(mr);
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0));
}

TEST_F(DeviceMemory, EndsAtWhatTheDeviceHas) {
  EXPECT_FALSE(allocate(most() + 1));
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_FALSE(allocate(SIZE_MAX));
  EXPECT_EQ(ENOMEM, errno);
  auto half = allocate(most() / 2 + 1);
  ASSERT_TRUE(half);
  EXPECT_FALSE(allocate(most() / 2));
  EXPECT_EQ(ENOMEM, errno);
  half.reset();
  EXPECT_TRUE(allocate(most()));
}

}  // namespace
}  // namespace verbena::abi
