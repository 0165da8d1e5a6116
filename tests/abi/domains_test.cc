// Parent domains, thread domains and XRC domains, and shared receive queues of XRC.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

class Domains : public Rig {
 protected:
  Owned<ibv_td> make_td() {
    ibv_td_init_attr attributes{};
    return Owned<ibv_td>(ibv_alloc_td(context_.get(), &attributes));
  }
  Owned<ibv_pd> make_parent(ibv_pd* pd, ibv_td* td) {
    ibv_parent_domain_init_attr attributes{};
    attributes.pd = pd;
    attributes.td = td;
    return Owned<ibv_pd>(ibv_alloc_parent_domain(context_.get(), &attributes));
  }
  Owned<ibv_xrcd> open(int fd, int flags) {
    ibv_xrcd_init_attr attributes{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
    return Owned<ibv_xrcd>(ibv_open_xrcd(context_.get(), &attributes));
  }
  ibv_srq_init_attr_ex xrc_attributes(ibv_xrcd* xrcd) {
    ibv_srq_init_attr_ex attributes{};
    attributes.attr = {16, 1, 0};
    attributes.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attributes.srq_type = IBV_SRQT_XRC;
    attributes.pd = pd_.get();
    attributes.xrcd = xrcd;
    attributes.cq = cq_.get();
    return attributes;
  }
  Owned<ibv_srq> make_xrc_srq(ibv_xrcd* xrcd) {
    ibv_srq_init_attr_ex attributes = xrc_attributes(xrcd);
    return Owned<ibv_srq>(ibv_create_srq_ex(context_.get(), &attributes));
  }
};

TEST_F(Domains, WhatIsMadeInAParentDomainBelongsToTheOneUnderIt) {
  auto td = make_td();
  auto parent = make_parent(pd_.get(), td.get());
  ASSERT_TRUE(td && parent);
  EXPECT_EQ(context_.get(), parent->context);
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  Owned<ibv_qp> qp(ibv_create_qp(parent.get(), &attributes));
  ASSERT_TRUE(qp);
  EXPECT_EQ(parent.get(), qp->pd);
  to_ready(qp.get());
  // Region and address handle of the protection domain, queue pair of the parent domain.
  auto ah = make_ah();
  ASSERT_EQ(0, post_receive(qp.get(), 2));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 64));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
}

TEST_F(Domains, EachStaysWhileItIsUsed) {
  auto td = make_td();
  Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
  auto parent = make_parent(pd.get(), td.get());
  ASSERT_TRUE(td && pd && parent);
  EXPECT_EQ(EBUSY, ibv_dealloc_td(td.get()));
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  {
    Owned<ibv_mr> mr(ibv_reg_mr(parent.get(), memory_.data(), 64, 0));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent.get()));
  }
  {
    ibv_ah_attr address = address_of(gid_);
    Owned<ibv_ah> ah(ibv_create_ah(parent.get(), &address));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent.get()));
  }
  {
    Owned<ibv_mw> mw(ibv_alloc_mw(parent.get(), IBV_MW_TYPE_1));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent.get()));
  }
  {
    ibv_srq_init_attr attributes{nullptr, {16, 1, 0}};
    Owned<ibv_srq> srq(ibv_create_srq(parent.get(), &attributes));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent.get()));
  }
  {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 4;
    attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attributes.parent_domain = parent.get();
    ibv_cq_ex* const cq = ibv_create_cq_ex(context_.get(), &attributes);
    ASSERT_NE(nullptr, cq);
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(parent.get()));
    EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    attributes.parent_domain = pd.get();
    EXPECT_EQ(nullptr, ibv_create_cq_ex(context_.get(), &attributes));
    EXPECT_EQ(EINVAL, errno);
  }
  parent.reset();
  EXPECT_EQ(0, ibv_dealloc_td(td.release()));
}

TEST_F(Domains, AParentDomainIsRefusedWithAReason) {
  auto parent = make_parent(pd_.get(), nullptr);
  ASSERT_TRUE(parent);
  const auto error_of = [&](ibv_parent_domain_init_attr attributes) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_alloc_parent_domain(context_.get(), &attributes));
    return errno;
  };
  EXPECT_EQ(EINVAL, error_of({}));
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = parent.get();
  EXPECT_EQ(EINVAL, error_of(attributes)) << "a parent of a parent";
  attributes.pd = pd_.get();
  attributes.comp_mask = 1 << 5;
  EXPECT_EQ(EINVAL, error_of(attributes));
  attributes.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attributes.alloc = [](ibv_pd*, void*, std::size_t, std::size_t, std::uint64_t) -> void* { return nullptr; };
  attributes.free = [](ibv_pd*, void*, void*, std::uint64_t) {};
  EXPECT_EQ(EOPNOTSUPP, error_of(attributes));
  attributes.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  attributes.pd_context = this;
  EXPECT_TRUE(Owned<ibv_pd>(ibv_alloc_parent_domain(context_.get(), &attributes)));
  ibv_td_init_attr td{.comp_mask = 1};
  EXPECT_EQ(nullptr, ibv_alloc_td(context_.get(), &td));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(Domains, AnXrcDomainIsOneForEachFile) {
  const int file = ::memfd_create("one", MFD_CLOEXEC);
  const int other = ::memfd_create("other", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  const int again = ::dup(file);
  EXPECT_FALSE(open(file, 0)) << "not there yet";
  EXPECT_EQ(EAGAIN, errno);
  auto first = open(file, O_CREAT);
  ASSERT_TRUE(first);
  EXPECT_EQ(context_.get(), first->context);
  EXPECT_TRUE(open(again, 0));
  EXPECT_TRUE(open(again, O_CREAT));
  EXPECT_FALSE(open(again, O_CREAT | O_EXCL));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_TRUE(open(other, O_CREAT | O_EXCL));
  EXPECT_TRUE(open(-1, O_CREAT));
  EXPECT_TRUE(open(-1, O_CREAT));
  first.reset();
  EXPECT_FALSE(open(file, 0)) << "gone with its last user";
  ::close(again);
  EXPECT_FALSE(open(again, O_CREAT));
  EXPECT_EQ(EBADF, errno);
  ibv_xrcd_init_attr attributes{.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
  EXPECT_EQ(nullptr, ibv_open_xrcd(context_.get(), &attributes));
  EXPECT_EQ(EINVAL, errno);
  ::close(file);
  ::close(other);
}

TEST_F(Domains, AnXrcQueueHasANumberAndHoldsItsParts) {
  auto xrcd = open(-1, O_CREAT);
  ASSERT_TRUE(xrcd);
  auto first = make_xrc_srq(xrcd.get());
  auto second = make_xrc_srq(xrcd.get());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(context_.get(), first->context);
  EXPECT_EQ(pd_.get(), first->pd);
  std::uint32_t numbers[2] = {0, 0};
  EXPECT_EQ(0, ibv_get_srq_num(first.get(), &numbers[0]));
  EXPECT_EQ(0, ibv_get_srq_num(second.get(), &numbers[1]));
  EXPECT_NE(0u, numbers[0]);
  EXPECT_NE(numbers[0], numbers[1]);
  auto qp = make_qp();
  EXPECT_EQ(qp->qp_num >> 16, numbers[0] >> 16) << "the slot of the process";
  EXPECT_EQ(EBUSY, ibv_close_xrcd(xrcd.get()));
  qp.reset();
  EXPECT_EQ(EBUSY, ibv_destroy_cq(cq_.get()));
  ibv_srq_attr attributes{};
  EXPECT_EQ(0, ibv_query_srq(first.get(), &attributes));
  EXPECT_GE(attributes.max_wr, 16u);
  ibv_sge sge = receive_sge(64);
  ibv_recv_wr request{.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(0, ibv_post_srq_recv(first.get(), &request, &bad));
}

TEST_F(Domains, AnXrcQueueNeedsAllItsParts) {
  auto xrcd = open(-1, O_CREAT);
  ASSERT_TRUE(xrcd);
  for (const std::uint32_t missing : {IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ}) {
    ibv_srq_init_attr_ex attributes = xrc_attributes(xrcd.get());
    attributes.comp_mask &= ~missing;
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_srq_ex(context_.get(), &attributes)) << missing;
    EXPECT_EQ(EINVAL, errno) << missing;
  }
  ibv_srq_init_attr plain{nullptr, {16, 1, 0}};
  Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &plain));
  std::uint32_t number = 0;
  EXPECT_EQ(EINVAL, ibv_get_srq_num(srq.get(), &number));
  ibv_srq_init_attr_ex matching = xrc_attributes(xrcd.get());
  matching.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(nullptr, ibv_create_srq_ex(context_.get(), &matching));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

}  // namespace
}  // namespace verbena::abi
