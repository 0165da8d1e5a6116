// Memory regions beyond the plain kind: on demand, of everything, null, advised, registered anew.
#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

// Pages of this process that come and go.
class Pages {
 public:
  explicit Pages(std::size_t count) : length_(count * kPage) { map(); }
  ~Pages() { unmap(); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void map(int protection = PROT_READ | PROT_WRITE) {
    const int fixed = at_ == nullptr ? 0 : MAP_FIXED;
    at_ = ::mmap(at_, length_, protection, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    ASSERT_NE(MAP_FAILED, at_);
  }
  void unmap() { ::munmap(at_, length_); }
  std::byte* data() const { return static_cast<std::byte*>(at_); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at_); }
  std::size_t size() const { return length_; }
  static constexpr std::size_t kPage = 4096;

 private:
  const std::size_t length_;
  void* at_ = nullptr;
};

class Memory : public Rig {
 protected:
  // One datagram from `from` to `to`, both of `length` bytes behind the GRH; the completions of both sides.
  std::vector<ibv_wc> send(ibv_sge from, ibv_sge to) {
    auto qp = make_ready_qp();
    auto ah = make_ah();
    ibv_recv_wr receive{.wr_id = 7, .next = nullptr, .sg_list = &to, .num_sge = 1};
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(0, ibv_post_recv(qp.get(), &receive, &bad_receive));
    ibv_send_wr request = send_request(&from, ah.get(), qp->qp_num, 1);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
    const bool ends_here = !will_arrive_;
    auto completions = take_completions(cq_.get(), ends_here ? 1 : 2);
    std::sort(completions.begin(), completions.end(), [](const auto& a, const auto& b) { return a.wr_id < b.wr_id; });
    return completions;
  }
  static ibv_sge sge(std::uint64_t address, std::uint32_t length, const ibv_mr* mr) {
    return {address, length, mr->lkey};
  }
  static constexpr unsigned kOnDemand = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE;
  Owned<ibv_mr> everything() { return Owned<ibv_mr>(ibv_reg_mr(pd_.get(), nullptr, SIZE_MAX, kOnDemand)); }

  bool will_arrive_ = true;
};

TEST_F(Memory, TheDeviceTellsOfPagingOnDemand) {
  ibv_device_attr_ex attributes{};
  ASSERT_EQ(0, ibv_query_device_ex(context_.get(), nullptr, &attributes));
  EXPECT_EQ(static_cast<std::uint64_t>(IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT), attributes.odp_caps.general_caps);
  const auto datagram = attributes.odp_caps.per_transport_caps.ud_odp_caps;
  EXPECT_EQ(static_cast<std::uint32_t>(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV),
            datagram);
}

TEST_F(Memory, ARegionOfEverythingReachesWhatIsMappedLater) {
  auto mr = everything();
  ASSERT_TRUE(mr);
  Pages pages(2);
  pages.data()[0] = std::byte{0x5a};
  const auto completions = send(sge(pages.address(), 64, mr.get()), sge(pages.address() + Pages::kPage, 104, mr.get()));
  EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
  EXPECT_EQ(IBV_WC_SUCCESS, completions[1].status);
  EXPECT_EQ(std::byte{0x5a}, pages.data()[Pages::kPage + kGrh]);
}

TEST_F(Memory, OnDemandMayBeUnmappedAndMappedAgain) {
  Pages pages(1);
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), pages.data(), pages.size(), kOnDemand));
  ASSERT_TRUE(mr);
  pages.unmap();
  pages.map();
  pages.data()[9] = std::byte{0x77};
  const auto completions = send(sge(pages.address(), 64, mr.get()), receive_sge(200));
  EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
  EXPECT_EQ(std::byte{0x77}, receiving()[kGrh + 9]);
}

TEST_F(Memory, WhatIsNotMappedOnDemandIsAProtectionErrorOfTheSender) {
  auto mr = everything();
  ASSERT_TRUE(mr);
  Pages pages(2);
  ASSERT_EQ(0, ::munmap(pages.data() + Pages::kPage, Pages::kPage));
  will_arrive_ = false;
  const auto completions = send(sge(pages.address() + Pages::kPage - 8, 16, mr.get()), receive_sge(200));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, completions[0].status);
}

TEST_F(Memory, WhatIsNotWritableOnDemandIsAProtectionErrorOfTheReceiver) {
  auto mr = everything();
  ASSERT_TRUE(mr);
  Pages pages(1);
  ASSERT_EQ(0, ::mprotect(pages.data(), pages.size(), PROT_READ));
  const auto completions = send(send_sge(16), sge(pages.address(), 200, mr.get()));
  EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, completions[1].status);
}

TEST_F(Memory, EverythingIsOnDemandOnly) {
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(EFAULT, errno);
  Pages pages(1);
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), pages.data(), 0, kOnDemand));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(Memory, ANullRegionReadsZerosAndKeepsNothing) {
  Owned<ibv_mr> null(ibv_alloc_null_mr(pd_.get()));
  ASSERT_TRUE(null);
  EXPECT_EQ(context_.get(), null->context);
  EXPECT_EQ(pd_.get(), null->pd);
  EXPECT_EQ(nullptr, null->addr);
  EXPECT_NE(0u, null->lkey);
  for (int round = 0; round < 2; ++round) {
    auto completions = send(sge(0x1234, 64, null.get()), receive_sge(200));
    ASSERT_EQ(IBV_WC_SUCCESS, completions[0].status);
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(std::byte{0}, receiving()[kGrh + i]) << i;
    completions = send(send_sge(64), sge(0, 1U << 31, null.get()));
    EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
    EXPECT_EQ(IBV_WC_SUCCESS, completions[1].status);
    EXPECT_EQ(kGrh + 64, completions[1].byte_len);
  }
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(null.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0));
}

TEST_F(Memory, AnotherIovaIsWhatRequestsSay) {
  constexpr std::uint64_t kIova = 0x123456789000;
  Owned<ibv_mr> mr(ibv_reg_mr_iova(pd_.get(), memory_.data(), kHalf, kIova, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_TRUE(mr);
  sending()[5] = std::byte{0x42};
  auto completions = send(sge(kIova + 5, 8, mr.get()), receive_sge(200));
  EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
  EXPECT_EQ(std::byte{0x42}, receiving()[kGrh]);
  will_arrive_ = false;
  completions = send({reinterpret_cast<std::uint64_t>(sending()), 8, mr->lkey}, receive_sge(200));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, completions[0].status);
}

TEST_F(Memory, AZeroBasedRegionBeginsAtZero) {
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), kHalf, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
  ASSERT_TRUE(mr);
  sending()[3] = std::byte{0x24};
  const auto completions = send(sge(3, 8, mr.get()), receive_sge(200));
  EXPECT_EQ(IBV_WC_SUCCESS, completions[0].status);
  EXPECT_EQ(std::byte{0x24}, receiving()[kGrh]);
}

TEST_F(Memory, RegisteredAnewKeepsItsKeysAndReachesTheNewMemoryOnly) {
  Pages pages(2);
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), pages.data(), Pages::kPage, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_TRUE(mr);
  const ibv_mr before = *mr;
  std::byte* const second = pages.data() + Pages::kPage;
  ASSERT_EQ(0, ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, second, Pages::kPage, 0));
  EXPECT_EQ(second, mr->addr);
  EXPECT_EQ(before.lkey, mr->lkey);
  EXPECT_EQ(before.rkey, mr->rkey);
  EXPECT_EQ(IBV_WC_SUCCESS, send(sge(pages.address() + Pages::kPage, 8, mr.get()), receive_sge(200))[0].status);
  will_arrive_ = false;
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, send(sge(pages.address(), 8, &before), receive_sge(200))[0].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, send(sge(pages.address(), 8, mr.get()), receive_sge(200))[0].status);
}

TEST_F(Memory, RegisteredAnewBelongsToTheOtherDomain) {
  Owned<ibv_pd> other(ibv_alloc_pd(context_.get()));
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), kHalf, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_TRUE(other && mr);
  ASSERT_EQ(0, ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, 0));
  EXPECT_EQ(other.get(), mr->pd);
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(other.get()));
  will_arrive_ = false;
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR,
            send(sge(reinterpret_cast<std::uint64_t>(sending()), 8, mr.get()), receive_sge(99))[0].status);
  mr.reset();
}

TEST_F(Memory, RegisteringAnewThatFailsLeavesTheOldRegion) {
  Pages pages(1);
  Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), kHalf, IBV_ACCESS_LOCAL_WRITE));
  ASSERT_TRUE(mr);
  const ibv_mr before = *mr;
  pages.unmap();
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
            ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, pages.data(), pages.size(), 0));
  EXPECT_EQ(EFAULT, errno);
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
            ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(0, std::memcmp(&before, mr.get(), sizeof before));
  EXPECT_EQ(IBV_WC_SUCCESS,
            send(sge(reinterpret_cast<std::uint64_t>(sending()), 8, mr.get()), receive_sge(200))[0].status);
}

TEST_F(Memory, AdviceIsCheckedAndTaken) {
  Pages pages(2);
  Owned<ibv_mr> writable(ibv_reg_mr(pd_.get(), pages.data(), pages.size(), kOnDemand));
  Owned<ibv_mr> readable(ibv_reg_mr(pd_.get(), pages.data(), pages.size(), IBV_ACCESS_ON_DEMAND));
  Owned<ibv_pd> other(ibv_alloc_pd(context_.get()));
  ASSERT_TRUE(writable && readable && other);
  const auto advise = [&](ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge piece) {
    return ibv_advise_mr(pd, advice, flags, &piece, 1);
  };
  const ibv_sge good = sge(pages.address(), 100, writable.get());
  for (const auto advice :
       {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT}) {
    EXPECT_EQ(0, advise(pd_.get(), advice, 0, good));
    EXPECT_EQ(0, advise(pd_.get(), advice, IBV_ADVISE_MR_FLAG_FLUSH, good));
    EXPECT_EQ(EINVAL, advise(pd_.get(), advice, 2, good)) << "an unknown flag";
    EXPECT_EQ(EPERM, advise(other.get(), advice, 0, good)) << "another domain";
    EXPECT_EQ(ENOENT, advise(pd_.get(), advice, 0, {good.addr, 100, good.lkey ^ 1}));
    EXPECT_EQ(EINVAL, advise(pd_.get(), advice, 0, send_sge(10))) << "not on demand";
    EXPECT_EQ(EFAULT, advise(pd_.get(), advice, 0, {good.addr, 2 * Pages::kPage + 1, good.lkey}));
    EXPECT_EQ(EINVAL, ibv_advise_mr(pd_.get(), advice, 0, nullptr, 0));
  }
  EXPECT_EQ(EOPNOTSUPP, advise(pd_.get(), static_cast<ibv_advise_mr_advice>(3), 0, good));
  EXPECT_EQ(EPERM, advise(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge(good.addr, 8, readable.get())));
  unsigned char resident = 0;
  EXPECT_EQ(0, advise(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, good));
  ASSERT_EQ(0, ::mincore(pages.data() + Pages::kPage, Pages::kPage, &resident));
  EXPECT_EQ(0, resident & 1);
  EXPECT_EQ(0, advise(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, {good.addr + Pages::kPage, 8, good.lkey}));
  ASSERT_EQ(0, ::mincore(pages.data() + Pages::kPage, Pages::kPage, &resident));
  EXPECT_EQ(1, resident & 1);
  pages.unmap();
  EXPECT_EQ(EFAULT, advise(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, good));
}

}  // namespace
}  // namespace verbena::abi
