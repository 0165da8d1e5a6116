// The extended calls: completion queues that are read field by field, and sends that are built call by call.
#include <atomic>
#include <thread>

#include "rig.h"

namespace verbena::abi {
namespace {

class Extended : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 32;
    attributes.wc_flags = IBV_WC_STANDARD_FLAGS;
    extended_.reset(reinterpret_cast<ibv_cq*>(ibv_create_cq_ex(context_.get(), &attributes)));
    ASSERT_TRUE(extended_);
    qp_ = make_extended_qp(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
    ASSERT_TRUE(qp_);
    to_ready(qp_.get());
    calls_ = ibv_qp_to_qp_ex(qp_.get());
    ASSERT_NE(nullptr, calls_);
    ah_ = make_ah();
  }

  Owned<ibv_qp> make_extended_qp(std::uint64_t operations) {
    const ibv_qp_init_attr plain = ud_attributes(extended_.get());
    ibv_qp_init_attr_ex attributes{};
    attributes.send_cq = plain.send_cq;
    attributes.recv_cq = plain.recv_cq;
    attributes.cap = plain.cap;
    attributes.qp_type = plain.qp_type;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pd_.get();
    attributes.send_ops_flags = operations;
    return Owned<ibv_qp>(ibv_create_qp_ex(context_.get(), &attributes));
  }
  ibv_cq_ex* queue() { return reinterpret_cast<ibv_cq_ex*>(extended_.get()); }

  // Starts a poll, waiting for the first completion.
  void start_poll() {
    ibv_poll_cq_attr attributes{};
    int error = ENOENT;
    for (int i = 0; i < 2'000'000 && error == ENOENT; ++i) {
      error = ibv_start_poll(queue(), &attributes);
      if (error == ENOENT) sched_yield();
    }
    ASSERT_EQ(0, error);
  }

  Owned<ibv_cq> extended_;
  Owned<ibv_ah> ah_;
  Owned<ibv_qp> qp_;
  ibv_qp_ex* calls_ = nullptr;
};

TEST_F(Extended, CompletionsAreReadFieldByField) {
  ASSERT_EQ(0, post_receive(qp_.get(), 21));
  ibv_wr_start(calls_);
  calls_->wr_id = 22;
  calls_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(calls_, 0xcafe);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_wr_set_sge(calls_, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 100);
  ASSERT_EQ(0, ibv_wr_complete(calls_));

  int sends = 0;
  int receives = 0;
  start_poll();
  for (int error = 0; error == 0;) {
    ASSERT_EQ(IBV_WC_SUCCESS, queue()->status);
    EXPECT_EQ(qp_->qp_num, ibv_wc_read_qp_num(queue()));
    if (ibv_wc_read_opcode(queue()) == IBV_WC_RECV) {
      ++receives;
      EXPECT_EQ(21u, queue()->wr_id);
      EXPECT_EQ(140u, ibv_wc_read_byte_len(queue()));
      EXPECT_EQ(0xcafeu, ibv_wc_read_imm_data(queue()));
      EXPECT_EQ(qp_->qp_num, ibv_wc_read_src_qp(queue()));
      EXPECT_EQ(static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM), ibv_wc_read_wc_flags(queue()));
      EXPECT_EQ(0u, ibv_wc_read_slid(queue()));
      EXPECT_GE(15, ibv_wc_read_sl(queue()));
      EXPECT_EQ(0, ibv_wc_read_dlid_path_bits(queue()));
      EXPECT_EQ(0u, ibv_wc_read_vendor_err(queue()));
    } else {
      ++sends;
      EXPECT_EQ(22u, queue()->wr_id);
    }
    do {
      error = ibv_next_poll(queue());
    } while (error == ENOENT && sends + receives < 2);
  }
  ibv_end_poll(queue());
  EXPECT_EQ(1, sends);
  EXPECT_EQ(1, receives);
}

TEST_F(Extended, AnEmptyQueueDoesNotStartAPoll) {
  ibv_poll_cq_attr attributes{};
  EXPECT_EQ(ENOENT, ibv_start_poll(queue(), &attributes));
  EXPECT_EQ(ENOENT, ibv_start_poll(queue(), &attributes));  // nothing was left locked
  attributes.comp_mask = 1;
  EXPECT_EQ(EINVAL, ibv_start_poll(queue(), &attributes));
}

TEST_F(Extended, PlainPollingWorksOnAnExtendedQueue) {
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, post_send(qp_.get(), ah_.get(), qp_->qp_num, 8));
  for (const ibv_wc& completion : take_completions(ibv_cq_ex_to_cq(queue()), 2)) {
    EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
  }
}

TEST_F(Extended, AListOfSendsGoesAtOnceOrNotAtAll) {
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(0, post_receive(qp_.get(), id, 1000, id * 1000));
  std::uint64_t word = 0x1111111111111111;
  ibv_wr_start(calls_);
  calls_->wr_flags = 0;
  ibv_wr_send(calls_);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_wr_set_inline_data(calls_, &word, sizeof word);
  word = 0x2222222222222222;
  ibv_wr_send(calls_);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_data_buf parts[] = {{&word, 4}, {reinterpret_cast<std::byte*>(&word) + 4, 4}};
  ibv_wr_set_inline_data_list(calls_, 2, parts);
  ibv_sge sges[] = {send_sge(4), send_sge(4, 4)};
  ibv_wr_send(calls_);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_wr_set_sge_list(calls_, 2, sges);
  ASSERT_EQ(0, ibv_wr_complete(calls_));
  take_completions(extended_.get(), 3);
  std::memcpy(&word, receiving() + kGrh, sizeof word);
  EXPECT_EQ(0x1111111111111111u, word);
  std::memcpy(&word, receiving() + 1000 + kGrh, sizeof word);
  EXPECT_EQ(0x2222222222222222u, word);

  ibv_wr_start(calls_);
  ibv_wr_send(calls_);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_wr_set_sge(calls_, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
  ibv_wr_abort(calls_);
  ibv_wr_start(calls_);
  calls_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(calls_);
  ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
  ibv_wr_set_sge(calls_, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
  ibv_wr_rdma_write(calls_, 1, 1);  // not what this queue pair was made for
  EXPECT_EQ(EINVAL, ibv_wr_complete(calls_));
  ibv_wc completion{};
  EXPECT_EQ(0, ibv_poll_cq(extended_.get(), 1, &completion));
}

TEST_F(Extended, WhatCannotBePostedWholeIsNotPostedAtAll) {
  const auto add = [this](std::uint64_t id, std::uint32_t qpn) {
    calls_->wr_id = id;
    calls_->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(calls_);
    ibv_wr_set_ud_addr(calls_, ah_.get(), qpn, kQkey);
    ibv_wr_set_sge(calls_, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
  };
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp_.get(), &attributes, IBV_QP_CAP, &init));
  const std::uint32_t room = init.cap.max_send_wr;
  ibv_wr_start(calls_);
  for (std::uint32_t i = 0; i <= room; ++i) add(i, 0xfffff0);
  EXPECT_EQ(ENOMEM, ibv_wr_complete(calls_));
  ibv_wc completion{};
  EXPECT_EQ(0, ibv_poll_cq(extended_.get(), 1, &completion));
  ibv_wr_start(calls_);
  for (std::uint32_t i = 0; i < room; ++i) add(i, 0xfffff0);
  EXPECT_EQ(0, ibv_wr_complete(calls_)) << "nothing of the list before is left";
  take_completions(extended_.get(), room);
}

TEST_F(Extended, AFlagThatIsNotOfferedRefusesTheList) {
  ibv_device_attr_ex offered{};
  ASSERT_EQ(0, ibv_query_device_ex(qp_->context, nullptr, &offered));
  ASSERT_EQ(0u, offered.device_cap_flags_ex & IBV_DEVICE_UD_IP_CSUM);
  for (const unsigned flag : {unsigned{IBV_SEND_IP_CSUM}, 1U << 5, 1U << 31}) {
    ibv_wr_start(calls_);
    calls_->wr_flags = IBV_SEND_SIGNALED | flag;
    ibv_wr_send(calls_);
    ibv_wr_set_ud_addr(calls_, ah_.get(), qp_->qp_num, kQkey);
    ibv_wr_set_sge(calls_, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
    EXPECT_EQ(EINVAL, ibv_wr_complete(calls_)) << flag;
  }
}

TEST_F(Extended, OnlyAQueuePairMadeForThemHasTheCalls) {
  auto plain = make_qp();
  EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(plain.get()));
  errno = 0;
  EXPECT_FALSE(make_extended_qp(IBV_QP_EX_WITH_RDMA_WRITE));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(Extended, UnknownWishesAreRefused) {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 8;
  attributes.wc_flags = IBV_WC_EX_WITH_CVLAN;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_cq_ex(context_.get(), &attributes));
  EXPECT_EQ(EOPNOTSUPP, errno);
  attributes.wc_flags = 1ull << 40;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_cq_ex(context_.get(), &attributes));
  EXPECT_EQ(EOPNOTSUPP, errno);
  attributes.wc_flags = 0;
  attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attributes.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  Owned<ibv_cq> single(reinterpret_cast<ibv_cq*>(ibv_create_cq_ex(context_.get(), &attributes)));
  EXPECT_TRUE(single);
  ibv_srq_init_attr_ex srq{};
  srq.attr = {8, 1, 0};
  srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD;
  srq.srq_type = IBV_SRQT_TM;
  srq.pd = pd_.get();
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_srq_ex(context_.get(), &srq));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(Extended, TwoThreadsPollOneQueueFieldByField) {
  constexpr std::uint64_t kSends = 200;
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> seen{0};
  const auto reader = [&] {
    ibv_poll_cq_attr attributes{};
    for (int i = 0; i < 4'000'000 && seen < kSends; ++i) {
      if (ibv_start_poll(queue(), &attributes) != 0) {
        std::this_thread::yield();
        continue;
      }
      sum += queue()->wr_id;
      ++seen;
      ibv_end_poll(queue());
    }
  };
  std::thread first(reader);
  std::thread second(reader);
  for (std::uint64_t id = 1; id <= kSends; ++id) {
    ASSERT_EQ(0, post_send(qp_.get(), ah_.get(), 0xfffff0, 8, id));
    while (seen + 15 < id) std::this_thread::yield();
  }
  first.join();
  second.join();
  EXPECT_EQ(kSends * (kSends + 1) / 2, sum);
}

}  // namespace
}  // namespace verbena::abi
