// XRC queue pairs through the C ABI: one that sends, one that receives for all of its domain, and shared receive
// queues.
#include <map>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Xrc : public Rig {
 protected:
  void SetUp() override {
    Rig::SetUp();
    if (HasFatalFailure()) return;
    mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), kAccess));
    ASSERT_TRUE(mr_);
    receive_cq_.reset(ibv_create_cq(context_.get(), 64, nullptr, nullptr, 0));
    domain_ = open_domain();
    srq_ = make_queue(domain_.get(), pd_.get(), receive_cq_.get());
    sender_ = make_sender();
    receiver_ = make_receiver(domain_.get());
    ASSERT_TRUE(domain_ && srq_ && sender_ && receiver_);
  }

  Owned<ibv_xrcd> open_domain() {
    ibv_xrcd_init_attr attributes{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    return Owned<ibv_xrcd>(ibv_open_xrcd(context_.get(), &attributes));
  }
  Owned<ibv_srq> make_queue(ibv_xrcd* domain, ibv_pd* pd, ibv_cq* cq) {
    ibv_srq_init_attr_ex attributes{};
    attributes.attr = {16, 1, 0};
    attributes.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attributes.srq_type = IBV_SRQT_XRC;
    attributes.pd = pd;
    attributes.xrcd = domain;
    attributes.cq = cq;
    return Owned<ibv_srq>(ibv_create_srq_ex(context_.get(), &attributes));
  }
  ibv_qp_init_attr_ex sender_attributes() {
    ibv_qp_init_attr_ex attributes{};
    attributes.send_cq = cq_.get();
    attributes.cap = {
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    attributes.qp_type = IBV_QPT_XRC_SEND;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    attributes.pd = pd_.get();
    return attributes;
  }
  Owned<ibv_qp> make_sender(std::uint64_t extended_sends = 0) {
    ibv_qp_init_attr_ex attributes = sender_attributes();
    if (extended_sends != 0) attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = extended_sends;
    Owned<ibv_qp> made(ibv_create_qp_ex(context_.get(), &attributes));
    EXPECT_EQ(0U, attributes.cap.max_recv_wr) << "it receives nothing";
    return made;
  }
  Owned<ibv_qp> make_receiver(ibv_xrcd* domain) {
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = IBV_QPT_XRC_RECV;
    attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attributes.xrcd = domain;
    return Owned<ibv_qp>(ibv_create_qp_ex(context_.get(), &attributes));
  }
  Owned<ibv_qp> open(ibv_xrcd* domain, std::uint32_t number, void* qp_context = nullptr) {
    ibv_qp_open_attr attributes{
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = number,
        .xrcd = domain,
        .qp_context = qp_context,
        .qp_type = IBV_QPT_XRC_RECV};
    errno = 0;
    return Owned<ibv_qp>(ibv_open_qp(context_.get(), &attributes));
  }

  // As programs do: the attributes of both ends to either.
  void connect(ibv_qp* qp, std::uint32_t peer) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = kPort;
    attributes.qp_access_flags = kAccess;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attributes.qp_state = IBV_QPS_RTR;
    attributes.ah_attr = address_of(gid_);
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = peer;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 1;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 1;
    attributes.max_rd_atomic = 1;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC));
  }
  void connect_both() {
    connect(receiver_.get(), sender_->qp_num);
    connect(sender_.get(), receiver_->qp_num);
  }

  std::uint32_t number_of(ibv_srq* srq) {
    std::uint32_t number = 0;
    EXPECT_EQ(0, ibv_get_srq_num(srq, &number));
    return number;
  }
  int post_shared(ibv_srq* srq, std::uint64_t id, std::uint32_t length = 1024) {
    ibv_sge sge = receive_sge(length);
    ibv_recv_wr request{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq, &request, &bad);
  }
  int post(ibv_wr_opcode opcode, std::uint32_t queue, std::uint32_t length, std::uint64_t id = 1) {
    ibv_sge sge = send_sge(length);
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    const auto target = reinterpret_cast<std::uint64_t>(receiving() + 4096);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      request.wr.atomic = {.remote_addr = target, .compare_add = 5, .swap = 0, .rkey = mr_->rkey};
    } else {
      request.wr.rdma = {.remote_addr = target, .rkey = mr_->rkey};
    }
    request.imm_data = 0x01020304;
    request.qp_type.xrc.remote_srqn = queue;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(sender_.get(), &request, &bad);
  }
  void expect_sent(ibv_wc_status status) {
    const auto done = take_completions(cq_.get(), 1);
    ASSERT_EQ(1u, done.size());
    EXPECT_EQ(status, done[0].status) << ibv_wc_status_str(done[0].status);
  }
  ibv_event_type next_event(ibv_qp* of) {
    ibv_async_event event{};
    EXPECT_EQ(0, ibv_get_async_event(context_.get(), &event));
    EXPECT_EQ(of, event.element.qp);
    ibv_ack_async_event(&event);
    return event.event_type;
  }

  Owned<ibv_cq> receive_cq_;
  Owned<ibv_xrcd> domain_;
  Owned<ibv_srq> srq_;
  Owned<ibv_qp> sender_;
  Owned<ibv_qp> receiver_;
};

TEST_F(Xrc, ASendArrivesInTheQueueThatItNames) {
  Owned<ibv_cq> other_cq(ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0));
  auto other = make_queue(domain_.get(), pd_.get(), other_cq.get());
  connect_both();
  std::memset(sending(), 0x5a, 1000);
  ASSERT_EQ(0, post_shared(srq_.get(), 7));
  ASSERT_EQ(0, post_shared(other.get(), 8));
  ASSERT_EQ(0, post(IBV_WR_SEND_WITH_IMM, number_of(other.get()), 1000));
  expect_sent(IBV_WC_SUCCESS);
  const auto received = take_completions(other_cq.get(), 1);
  ASSERT_EQ(1u, received.size());
  EXPECT_EQ(IBV_WC_SUCCESS, received[0].status);
  EXPECT_EQ(8u, received[0].wr_id);
  EXPECT_EQ(IBV_WC_RECV, received[0].opcode);
  EXPECT_EQ(receiver_->qp_num, received[0].qp_num);
  EXPECT_EQ(sender_->qp_num, received[0].src_qp);
  EXPECT_EQ(0x01020304u, received[0].imm_data);
  EXPECT_EQ(0, std::memcmp(sending(), receiving(), 1000));
  ibv_wc none{};
  EXPECT_EQ(0, ibv_poll_cq(receive_cq_.get(), 1, &none));
}

TEST_F(Xrc, OneSidedRequestsUseTheQueuesProtectionDomain) {
  connect_both();
  const std::uint32_t queue = number_of(srq_.get());
  std::memset(sending(), 0x11, 64);
  ASSERT_EQ(0, post(IBV_WR_RDMA_WRITE, queue, 64));
  expect_sent(IBV_WC_SUCCESS);
  EXPECT_EQ(0, std::memcmp(sending(), receiving() + 4096, 64));
  std::memset(receiving() + 4096, 0x22, 64);
  ASSERT_EQ(0, post(IBV_WR_RDMA_READ, queue, 64));
  expect_sent(IBV_WC_SUCCESS);
  EXPECT_EQ(0, std::memcmp(sending(), receiving() + 4096, 64));
  std::memset(receiving() + 4096, 0, 8);
  ASSERT_EQ(0, post(IBV_WR_ATOMIC_FETCH_AND_ADD, queue, 8));
  expect_sent(IBV_WC_SUCCESS);
  std::uint64_t word = 0;
  std::memcpy(&word, receiving() + 4096, sizeof word);
  EXPECT_EQ(5u, word);

  Owned<ibv_pd> foreign(ibv_alloc_pd(context_.get()));
  auto strange = make_queue(domain_.get(), foreign.get(), receive_cq_.get());
  ASSERT_EQ(0, post(IBV_WR_RDMA_WRITE, number_of(strange.get()), 64));
  expect_sent(IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR, next_event(receiver_.get()));
  EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, next_event(receiver_.get()));
  EXPECT_EQ(IBV_QPS_ERR, [this] {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(0, ibv_query_qp(receiver_.get(), &attributes, IBV_QP_STATE, &init));
    EXPECT_EQ(IBV_QPT_XRC_RECV, init.qp_type);
    EXPECT_EQ(nullptr, init.send_cq);
    return attributes.qp_state;
  }());
}

TEST_F(Xrc, AQueueOfAnotherDomainIsAnInvalidRequest) {
  auto other_domain = open_domain();
  auto stranger = make_queue(other_domain.get(), pd_.get(), receive_cq_.get());
  ASSERT_TRUE(stranger);
  connect_both();
  ASSERT_EQ(0, post_shared(stranger.get(), 7));
  ASSERT_EQ(0, post(IBV_WR_SEND, number_of(stranger.get()), 64));
  expect_sent(IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, next_event(receiver_.get()));
}

TEST_F(Xrc, AnEmptyQueueIsNotReady) {
  connect_both();
  ASSERT_EQ(0, post(IBV_WR_SEND, number_of(srq_.get()), 64));
  expect_sent(IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(Xrc, TheLimitOfTheQueueIsTold) {
  connect_both();
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(0, post_shared(srq_.get(), id));
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 3};
  ASSERT_EQ(0, ibv_modify_srq(srq_.get(), &limit, IBV_SRQ_LIMIT));
  ASSERT_EQ(0, post(IBV_WR_SEND, number_of(srq_.get()), 64));
  expect_sent(IBV_WC_SUCCESS);
  ibv_async_event event{};
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
  EXPECT_EQ(srq_.get(), event.element.srq);
  ibv_ack_async_event(&event);
}

TEST_F(Xrc, TheExtendedCallsNameTheQueue) {
  sender_ = make_sender(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  ASSERT_TRUE(sender_);
  connect_both();
  ASSERT_EQ(0, post_shared(srq_.get(), 7));
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(sender_.get());
  ASSERT_NE(nullptr, extended);
  ibv_wr_start(extended);
  extended->wr_id = 3;
  extended->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(extended);
  ibv_wr_set_xrc_srqn(extended, number_of(srq_.get()));
  ibv_wr_set_sge(extended, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 32);
  ASSERT_EQ(0, ibv_wr_complete(extended));
  expect_sent(IBV_WC_SUCCESS);
  EXPECT_EQ(7u, take_completions(receive_cq_.get(), 1).at(0).wr_id);
}

TEST_F(Xrc, LivesUntilTheLastOfItsHandlesIsDestroyed) {
  int mark = 0;
  auto opened = open(domain_.get(), receiver_->qp_num, &mark);
  ASSERT_TRUE(opened);
  EXPECT_EQ(receiver_->qp_num, opened->qp_num);
  EXPECT_EQ(IBV_QPT_XRC_RECV, opened->qp_type);
  EXPECT_EQ(&mark, opened->qp_context);
  EXPECT_EQ(nullptr, opened->pd);
  connect(opened.get(), sender_->qp_num);
  connect(sender_.get(), opened->qp_num);
  receiver_.reset();
  ASSERT_EQ(0, post_shared(srq_.get(), 7));
  ASSERT_EQ(0, post(IBV_WR_SEND, number_of(srq_.get()), 64));
  expect_sent(IBV_WC_SUCCESS);
  EXPECT_EQ(EBUSY, ibv_close_xrcd(domain_.get())) << "a queue pair is in it";
  const std::uint32_t number = opened->qp_num;
  opened.reset();
  EXPECT_EQ(nullptr, open(domain_.get(), number));
  EXPECT_EQ(EINVAL, errno);
}

// Two contexts open the domain of one file; who opened it first goes first.
TEST_F(Xrc, ADomainOfTwoContextsOutlivesTheFirst) {
  const std::string path = ::testing::TempDir() + "xrc_domain_" + std::to_string(::getpid());
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_LE(0, file);
  ibv_xrcd_init_attr attributes{
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = file, .oflags = O_CREAT};
  Owned<ibv_context> first(open_first_device());
  Owned<ibv_xrcd> opened_first(ibv_open_xrcd(first.get(), &attributes));
  receiver_.reset();
  srq_.reset();
  domain_.reset(ibv_open_xrcd(context_.get(), &attributes));
  ASSERT_TRUE(opened_first && domain_);
  srq_ = make_queue(domain_.get(), pd_.get(), receive_cq_.get());
  receiver_ = make_receiver(domain_.get());
  ASSERT_TRUE(srq_ && receiver_);
  opened_first.reset();
  first.reset();

  const auto exchange = [this] {
    connect_both();
    ASSERT_EQ(0, post_shared(srq_.get(), 7));
    ASSERT_EQ(0, post(IBV_WR_SEND, number_of(srq_.get()), 64));
    expect_sent(IBV_WC_SUCCESS);
    EXPECT_EQ(7u, take_completions(receive_cq_.get(), 1).at(0).wr_id);
  };
  exchange();
  ASSERT_EQ(0, to_state(receiver_.get(), IBV_QPS_ERR));
  EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, next_event(receiver_.get()));

  receiver_ = make_receiver(domain_.get());  // after it went
  sender_ = make_sender();
  exchange();
  ::close(file);
  ::unlink(path.c_str());
}

TEST_F(Xrc, EveryHandleHearsOfEvents) {
  auto opened = open(domain_.get(), receiver_->qp_num);
  ASSERT_TRUE(opened);
  connect_both();
  ASSERT_EQ(0, to_state(receiver_.get(), IBV_QPS_ERR));
  std::map<ibv_qp*, int> told;
  for (int i = 0; i < 2; ++i) {
    ibv_async_event event{};
    ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
    EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
    ++told[event.element.qp];
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(1, told[receiver_.get()]);
  EXPECT_EQ(1, told[opened.get()]);
}

TEST_F(Xrc, OpeningNamesWhatIsThere) {
  ibv_qp_open_attr attributes{.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                              .qp_num = receiver_->qp_num,
                              .xrcd = domain_.get(),
                              .qp_context = nullptr,
                              .qp_type = IBV_QPT_XRC_RECV};
  const auto refused = [this](ibv_qp_open_attr wanted) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_open_qp(context_.get(), &wanted));
    return errno;
  };
  for (const std::uint32_t missing : {IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_XRCD, IBV_QP_OPEN_ATTR_TYPE}) {
    ibv_qp_open_attr partial = attributes;
    partial.comp_mask &= ~missing;
    EXPECT_EQ(EINVAL, refused(partial));
  }
  ibv_qp_open_attr unknown = attributes;
  unknown.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
  EXPECT_EQ(EOPNOTSUPP, refused(unknown));
  ibv_qp_open_attr of_a_sender = attributes;
  of_a_sender.qp_num = sender_->qp_num;
  EXPECT_EQ(EINVAL, refused(of_a_sender));
  ibv_qp_open_attr other_type = attributes;
  other_type.qp_type = IBV_QPT_RC;
  EXPECT_EQ(EINVAL, refused(other_type));
  auto other_domain = open_domain();
  ibv_qp_open_attr elsewhere = attributes;
  elsewhere.xrcd = other_domain.get();
  EXPECT_EQ(EINVAL, refused(elsewhere));
}

TEST_F(Xrc, EachNeedsWhatItBelongsTo) {
  ibv_qp_init_attr_ex attributes = sender_attributes();
  attributes.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_.get(), &attributes));
  EXPECT_EQ(EINVAL, errno) << "no protection domain";
  attributes = sender_attributes();
  attributes.send_cq = nullptr;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_.get(), &attributes));
  EXPECT_EQ(EINVAL, errno) << "no completion queue";
  ibv_qp_init_attr plain = ud_attributes(cq_.get());
  plain.qp_type = IBV_QPT_XRC_RECV;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &plain));
  EXPECT_EQ(EINVAL, errno) << "no XRC domain";
  plain.qp_type = IBV_QPT_XRC_SEND;
  Owned<ibv_qp> sender(ibv_create_qp(pd_.get(), &plain));
  EXPECT_TRUE(sender);
}

TEST_F(Xrc, PostsOnlyWhereThereIsAQueue) {
  connect_both();
  EXPECT_EQ(EINVAL, post_receive(sender_.get(), 1, 64));
  EXPECT_EQ(EINVAL, post_receive(receiver_.get(), 1, 64));
  ibv_sge sge = send_sge(8);
  ibv_send_wr request = send_request(&sge, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(receiver_.get(), &request, &bad));
  EXPECT_EQ(&request, bad);
  Owned<ibv_mw> window(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1));
  ASSERT_TRUE(window);
  ibv_mw_bind binding{};
  binding.bind_info.mr = mr_.get();
  EXPECT_EQ(EINVAL, ibv_bind_mw(receiver_.get(), window.get(), &binding));
}

TEST_F(Xrc, AQueueMayGoWhileItsQueuePairStays) {
  connect_both();
  const std::uint32_t number = number_of(srq_.get());
  srq_.reset();
  ASSERT_EQ(0, post(IBV_WR_SEND, number, 64));
  expect_sent(IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Xrc, TheDeviceSaysThatItHasThem) {
  ibv_device_attr attributes{};
  ASSERT_EQ(0, ibv_query_device(context_.get(), &attributes));
  EXPECT_NE(0, attributes.device_cap_flags & IBV_DEVICE_XRC);
}

}  // namespace
}  // namespace verbena::abi
