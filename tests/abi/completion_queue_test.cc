// Completion queues beyond the plain kind: resized, moderated, stamped, overrun on purpose.
#include <algorithm>

#include <poll.h>

#include "rig.h"

namespace verbena::abi {
namespace {

class CompletionQueues : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    channel_.reset(ibv_create_comp_channel(context_.get()));
    ASSERT_TRUE(channel_);
  }
  // Its sends complete in `cq`.
  Owned<ibv_qp> sender_into(ibv_cq* cq) {
    ibv_qp_init_attr attributes = ud_attributes(cq);
    Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
    EXPECT_TRUE(qp);
    if (qp) to_ready(qp.get());
    return qp;
  }
  // Sends to nobody: they complete all the same.
  void send(ibv_qp* qp, ibv_ah* ah, int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(0, post_send(qp, ah, qp->qp_num ^ 0x8000, 8, static_cast<unsigned>(i)));
  }
  bool event_within(int milliseconds) {
    pollfd ready{.fd = channel_->fd, .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, milliseconds) == 1;
  }
  void take_event(ibv_cq* expected) {
    ibv_cq* cq = nullptr;
    void* mark = nullptr;
    ASSERT_EQ(0, ibv_get_cq_event(channel_.get(), &cq, &mark));
    EXPECT_EQ(expected, cq);
    ibv_ack_cq_events(cq, 1);
  }
  static int moderate(ibv_cq* cq, std::uint16_t count, std::uint16_t period) {
    ibv_modify_cq_attr attributes{.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {count, period}};
    return ibv_modify_cq(cq, &attributes);
  }
  Owned<ibv_cq> extended(std::uint64_t fields, std::uint32_t flags = 0, std::uint32_t entries = 64) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = entries;
    attributes.wc_flags = fields;
    attributes.flags = flags;
    attributes.comp_mask = flags != 0 ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0;
    return Owned<ibv_cq>(ibv_cq_ex_to_cq(ibv_create_cq_ex(context_.get(), &attributes)));
  }
  std::uint64_t clock() {
    ibv_values_ex values{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
    EXPECT_EQ(0, ibv_query_rt_values_ex(context_.get(), &values));
    EXPECT_EQ(static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK), values.comp_mask);
    return static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  }

  Owned<ibv_comp_channel> channel_;
};

TEST_F(CompletionQueues, AreResizedWithWhatIsInThem) {
  Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 8, nullptr, nullptr, 0));
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  send(qp.get(), ah.get(), 6);
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), 5));
  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 100));
  EXPECT_GE(cq->cqe, 100);
  send(qp.get(), ah.get(), 8);
  const auto completions = take_completions(cq.get(), 14);
  for (std::size_t i = 0; i < completions.size(); ++i) EXPECT_EQ(i < 6 ? i : i - 6, completions[i].wr_id);
  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 2));
}

TEST_F(CompletionQueues, AnEventComesAfterSoMany) {
  Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 64, nullptr, channel_.get(), 0));
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  ASSERT_EQ(0, moderate(cq.get(), 4, 0));
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  send(qp.get(), ah.get(), 3);
  EXPECT_FALSE(event_within(50));
  send(qp.get(), ah.get(), 1);
  ASSERT_TRUE(event_within(1000));
  take_event(cq.get());
  send(qp.get(), ah.get(), 5);
  EXPECT_FALSE(event_within(0)) << "one for each arming";
}

TEST_F(CompletionQueues, AnEventComesWhenThePeriodIsOver) {
  Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 64, nullptr, channel_.get(), 0));
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  ASSERT_EQ(0, moderate(cq.get(), 1000, 20000));
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  EXPECT_FALSE(event_within(50)) << "nothing has completed";
  const std::uint64_t before = clock();
  send(qp.get(), ah.get(), 2);
  ASSERT_TRUE(event_within(5000));
  EXPECT_GE(clock() - before, 20'000'000u);
  take_event(cq.get());
  ASSERT_EQ(0, moderate(cq.get(), 0, 0));
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  send(qp.get(), ah.get(), 1);
  EXPECT_TRUE(event_within(1000)) << "off again";
  take_event(cq.get());
}

TEST_F(CompletionQueues, MayGoWhileAnEventOfThemWaits) {
  Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 64, nullptr, channel_.get(), 0));
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  ASSERT_EQ(0, moderate(cq.get(), 1000, 30000));
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  send(qp.get(), ah.get(), 2);
  qp.reset();
  cq.reset();
  EXPECT_FALSE(event_within(100));
}

TEST_F(CompletionQueues, WhatCannotBeModifiedIsRefused) {
  ibv_modify_cq_attr attributes{.attr_mask = 0, .moderate = {1, 1}};
  EXPECT_EQ(EINVAL, ibv_modify_cq(cq_.get(), &attributes));
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE | 1U << 5;
  EXPECT_EQ(EINVAL, ibv_modify_cq(cq_.get(), &attributes));
}

TEST_F(CompletionQueues, TheDeviceTellsOfItsClock) {
  ibv_device_attr_ex attributes{};
  ASSERT_EQ(0, ibv_query_device_ex(context_.get(), nullptr, &attributes));
  EXPECT_NE(0u, attributes.completion_timestamp_mask);
  EXPECT_EQ(1'000'000u, attributes.hca_core_clock) << "kHz";
  EXPECT_GT(attributes.cq_mod_caps.max_cq_count, 0);
  EXPECT_GT(attributes.cq_mod_caps.max_cq_period, 0);
  ibv_values_ex values{.comp_mask = 0, .raw_clock = {}};
  EXPECT_EQ(EINVAL, ibv_query_rt_values_ex(context_.get(), &values));
}

TEST_F(CompletionQueues, ACompletionTellsWhenItHappened) {
  auto cq = extended(std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  ASSERT_TRUE(cq);
  auto* const queue = reinterpret_cast<ibv_cq_ex*>(cq.get());
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const std::uint64_t wall_before = static_cast<std::uint64_t>(wall.tv_sec) * 1'000'000'000 - 1'000'000'000;
  std::uint64_t last = clock();
  send(qp.get(), ah.get(), 3);
  const std::uint64_t after = clock();
  ibv_poll_cq_attr attributes{};
  ASSERT_EQ(0, ibv_start_poll(queue, &attributes));
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      ASSERT_EQ(0, ibv_next_poll(queue));
    }
    const std::uint64_t stamp = ibv_wc_read_completion_ts(queue);
    EXPECT_GE(stamp, last);
    EXPECT_LE(stamp, after);
    last = stamp;
    EXPECT_GE(ibv_wc_read_completion_wallclock_ns(queue), wall_before);
    EXPECT_LE(ibv_wc_read_completion_wallclock_ns(queue), wall_before + 60'000'000'000);
  }
  ibv_end_poll(queue);
}

TEST_F(CompletionQueues, AnOverrunIsIgnoredWhereTheProgramSaysSo) {
  auto cq = extended(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, 4);
  ASSERT_TRUE(cq);
  auto qp = sender_into(cq.get());
  auto ah = make_ah();
  send(qp.get(), ah.get(), 6);
  take_completions(cq.get(), 4);
  ibv_wc completion{};
  EXPECT_EQ(0, ibv_poll_cq(cq.get(), 1, &completion)) << "the fifth and sixth are lost";
  send(qp.get(), ah.get(), 2);
  take_completions(cq.get(), 2);
}

}  // namespace
}  // namespace verbena::abi
