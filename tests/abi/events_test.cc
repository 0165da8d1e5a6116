// Completion channels and asynchronous events: what wakes, what is read, and what destroying waits for.
#include <atomic>
#include <thread>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

class Events : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    channel_.reset(ibv_create_comp_channel(context_.get()));
    ASSERT_TRUE(channel_);
    waiting_cq_.reset(ibv_create_cq(context_.get(), 16, &mark_, channel_.get(), 0));
    ASSERT_TRUE(waiting_cq_);
    ibv_qp_init_attr attributes = ud_attributes(waiting_cq_.get());
    qp_.reset(ibv_create_qp(pd_.get(), &attributes));
    ASSERT_TRUE(qp_);
    to_ready(qp_.get());
    ah_ = make_ah();
  }

  static bool readable(int fd, int timeout_ms) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
  }
  int send_to_self(unsigned flags = 0) {
    ibv_sge sge = send_sge(8);
    ibv_send_wr request = send_request(&sge, ah_.get(), qp_->qp_num);
    request.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp_.get(), &request, &bad);
  }

  int mark_ = 0;
  Owned<ibv_comp_channel> channel_;
  Owned<ibv_cq> waiting_cq_;
  Owned<ibv_ah> ah_;
  Owned<ibv_qp> qp_;
};

TEST_F(Events, AnArmedQueueWakesOnceForOneCompletion) {
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 0));
  EXPECT_FALSE(readable(channel_->fd, 0));
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, post_receive(qp_.get(), 2));
  ASSERT_EQ(0, send_to_self());
  ASSERT_TRUE(readable(channel_->fd, 10'000));
  ASSERT_EQ(0, send_to_self());
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_.get(), &cq, &cq_context));
  EXPECT_EQ(waiting_cq_.get(), cq);
  EXPECT_EQ(&mark_, cq_context);
  ibv_ack_cq_events(cq, 1);
  take_completions(cq, 2);
  EXPECT_FALSE(readable(channel_->fd, 0));
}

TEST_F(Events, ANonBlockingEmptyChannelSaysTryAgain) {
  ASSERT_EQ(0, ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK));
  ASSERT_EQ(0, ::fcntl(context_->async_fd, F_SETFL, ::fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK));
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  errno = 0;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_.get(), &cq, &cq_context));
  EXPECT_EQ(EAGAIN, errno);
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(-1, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(EAGAIN, errno);
}

TEST_F(Events, ArmedForSolicitedOnlyAPlainSendDoesNotWake) {
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 1));
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, post_receive(qp_.get(), 2));
  ASSERT_EQ(0, send_to_self());
  take_completions(waiting_cq_.get(), 1);
  EXPECT_FALSE(readable(channel_->fd, 0));
  ASSERT_EQ(0, send_to_self(IBV_SEND_SOLICITED));
  EXPECT_TRUE(readable(channel_->fd, 10'000));
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_.get(), &cq, &cq_context));
  ibv_ack_cq_events(cq, 1);
}

TEST_F(Events, AnErrorCompletionWakesWhoWaitsForSolicitedOnes) {
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 1));
  ASSERT_EQ(0, to_state(qp_.get(), IBV_QPS_ERR));
  ASSERT_TRUE(readable(channel_->fd, 10'000));
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_.get(), &cq, &cq_context));
  ibv_ack_cq_events(cq, 1);
}

TEST_F(Events, TheRecordOfACompletionEventIsEightBytes) {
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 0));
  ASSERT_EQ(0, send_to_self());
  ASSERT_TRUE(readable(channel_->fd, 10'000));
  std::array<std::byte, 64> record{};
  ASSERT_EQ(8, ::read(channel_->fd, record.data(), record.size()));
  ibv_cq* cq = nullptr;
  std::memcpy(&cq, record.data(), sizeof cq);
  EXPECT_EQ(waiting_cq_.get(), cq);
  ibv_ack_cq_events(cq, 1);  // of an event that only this program counted: must not hang the destruction
}

TEST_F(Events, DestroyingWaitsForTheAcknowledgement) {
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 0));
  ASSERT_EQ(0, send_to_self());
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_.get(), &cq, &cq_context));
  qp_.reset();
  std::atomic<bool> destroyed{false};
  std::atomic<bool> begun{false};
  ibv_cq* const doomed = waiting_cq_.release();
  std::thread destroyer([&] {
    begun = true;
    EXPECT_EQ(0, ibv_destroy_cq(doomed));
    destroyed = true;
  });
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(doomed, 1);
  destroyer.join();
  EXPECT_TRUE(destroyed);
}

// The address sanitizer takes the stack that a cancelled thread leaves for damaged.
#ifndef __SANITIZE_ADDRESS__
TEST_F(Events, AThreadThatWaitsCanBeCancelled) {
  struct Waiter {
    ibv_comp_channel* channel;
    ibv_context* context;
  } waiter{channel_.get(), context_.get()};
  pthread_t for_completion{};
  pthread_t for_async{};
  ASSERT_EQ(0, ::pthread_create(
                   &for_completion, nullptr,
                   [](void* argument) -> void* {
                     ibv_cq* cq = nullptr;
                     void* cq_context = nullptr;
                     ibv_get_cq_event(static_cast<Waiter*>(argument)->channel, &cq, &cq_context);
                     return nullptr;
                   },
                   &waiter));
  ASSERT_EQ(0, ::pthread_create(
                   &for_async, nullptr,
                   [](void* argument) -> void* {
                     ibv_async_event event{};
                     ibv_get_async_event(static_cast<Waiter*>(argument)->context, &event);
                     return nullptr;
                   },
                   &waiter));
  for (const pthread_t thread : {for_completion, for_async}) {
    ASSERT_EQ(0, ::pthread_cancel(thread));
    void* result = nullptr;
    ASSERT_EQ(0, ::pthread_join(thread, &result));
    EXPECT_EQ(PTHREAD_CANCELED, result);
  }
}
#endif

TEST_F(Events, EventsThatNobodyTookGoWithTheQueue) {
  ASSERT_EQ(0, post_receive(qp_.get(), 1));
  ASSERT_EQ(0, ibv_req_notify_cq(waiting_cq_.get(), 0));
  ASSERT_EQ(0, send_to_self());
  ASSERT_TRUE(readable(channel_->fd, 10'000));
  qp_.reset();
  waiting_cq_.reset();
  EXPECT_FALSE(readable(channel_->fd, 0));
}

TEST_F(Events, ADrainedSendQueueIsToldAsynchronously) {
  ASSERT_EQ(0, to_state(qp_.get(), IBV_QPS_RTS));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(0, ibv_modify_qp(qp_.get(), &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
  ASSERT_TRUE(readable(context_->async_fd, 10'000));
  ibv_async_event event{};
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
  EXPECT_EQ(qp_.get(), event.element.qp);
  ibv_ack_async_event(&event);
}

TEST_F(Events, ASharedReceiveQueueTellsItsLimitOnce) {
  ibv_srq_init_attr srq_attributes{nullptr, {8, 1, 0}};
  Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &srq_attributes));
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  attributes.srq = srq.get();
  Owned<ibv_qp> receiver(ibv_create_qp(pd_.get(), &attributes));
  to_ready(receiver.get());
  ibv_sge sge = receive_sge(1000);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ibv_recv_wr request{.wr_id = i, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(0, ibv_post_srq_recv(srq.get(), &request, &bad));
  }
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  ASSERT_EQ(0, ibv_modify_srq(srq.get(), &limit, IBV_SRQ_LIMIT));
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq.get(), &limit, 1 << 5));
  auto sender = make_ready_qp();
  ASSERT_EQ(0, post_send(sender.get(), ah_.get(), receiver->qp_num, 8));
  take_completions(cq_.get(), 2);
  ibv_async_event event{};
  ASSERT_TRUE(readable(context_->async_fd, 10'000));
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
  EXPECT_EQ(srq.get(), event.element.srq);
  ibv_ack_async_event(&event);
  ASSERT_EQ(0, ibv_query_srq(srq.get(), &limit));
  EXPECT_EQ(0u, limit.srq_limit);
}

TEST_F(Events, AnOverrunQueueIsToldAndItsQueuePairsFail) {
  Owned<ibv_cq> small(ibv_create_cq(context_.get(), 1, nullptr, nullptr, 0));
  ibv_qp_init_attr attributes = ud_attributes(small.get());
  Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
  to_ready(qp.get());
  for (int i = 0; i < 8; ++i) ASSERT_EQ(0, post_send(qp.get(), ah_.get(), 0xfffff0, 8));
  ASSERT_TRUE(readable(context_->async_fd, 10'000));
  ibv_async_event event{};
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
  EXPECT_EQ(small.get(), event.element.cq);
  ibv_ack_async_event(&event);
  ASSERT_TRUE(readable(context_->async_fd, 10'000));
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
  EXPECT_EQ(qp.get(), event.element.qp);
  ibv_ack_async_event(&event);
}

// As on hardware: the queue is in error until it is destroyed, and so is whatever completes there.
TEST_F(Events, AQueuePairOfAnOverrunQueueDoesNotComeBackToLife) {
  Owned<ibv_cq> small(ibv_create_cq(context_.get(), 1, nullptr, nullptr, 0));
  ibv_qp_init_attr attributes = ud_attributes(small.get());
  Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
  to_ready(qp.get());
  for (int i = 0; i < 8; ++i) ASSERT_EQ(0, post_send(qp.get(), ah_.get(), 0xfffff0, 8));
  for (const ibv_event_type type : {IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}) {
    ASSERT_TRUE(readable(context_->async_fd, 10'000));
    ibv_async_event event{};
    ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
    EXPECT_EQ(type, event.event_type);
    ibv_ack_async_event(&event);
  }
  ibv_wc completion{};
  EXPECT_EQ(1, ibv_poll_cq(small.get(), 1, &completion));
  EXPECT_GT(0, ibv_poll_cq(small.get(), 1, &completion));
  EXPECT_EQ(EINVAL, ibv_resize_cq(small.get(), 64));
  ibv_qp_attr change{};
  change.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(0, ibv_modify_qp(qp.get(), &change, IBV_QP_STATE));
  change.qp_state = IBV_QPS_INIT;
  change.port_num = 1;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &change, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  EXPECT_EQ(IBV_QPS_RESET, qp->state);
}

}  // namespace
}  // namespace verbena::abi
