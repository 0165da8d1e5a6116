// UD through the C API: what arrives, what the completion says, and how each bad post is refused.
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

using Datagrams = Rig;

TEST_F(Datagrams, ASendArrivesBehindFortyBytes) {
  auto sender = make_ready_qp();
  auto receiver = make_ready_qp();
  auto ah = make_ah();
  std::memset(sending(), 0x5c, 256);
  ASSERT_EQ(0, post_receive(receiver.get(), 77));
  ASSERT_EQ(0, post_send(sender.get(), ah.get(), receiver->qp_num, 256, 88));
  auto done = take_completions(cq_.get(), 2);
  const ibv_wc& sent = done[0].opcode == IBV_WC_SEND ? done[0] : done[1];
  const ibv_wc& received = done[0].opcode == IBV_WC_SEND ? done[1] : done[0];
  EXPECT_EQ(88u, sent.wr_id);
  EXPECT_EQ(IBV_WC_SUCCESS, sent.status);
  EXPECT_EQ(sender->qp_num, sent.qp_num);
  EXPECT_EQ(77u, received.wr_id);
  EXPECT_EQ(IBV_WC_SUCCESS, received.status);
  EXPECT_EQ(IBV_WC_RECV, received.opcode);
  EXPECT_EQ(256u + kGrh, received.byte_len);
  EXPECT_EQ(receiver->qp_num, received.qp_num);
  EXPECT_EQ(sender->qp_num, received.src_qp);
  EXPECT_EQ(static_cast<unsigned>(IBV_WC_GRH), received.wc_flags);
  EXPECT_EQ(0, std::memcmp(receiving() + kGrh, sending(), 256));
}

TEST_F(Datagrams, ImmediateDataArrivesAsItWasGiven) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_receive(qp.get(), 1));
  ibv_sge sge = send_sge(8);
  ibv_send_wr request = send_request(&sge, ah.get(), qp->qp_num);
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = 0x11223344;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) {
    ASSERT_EQ(IBV_WC_SUCCESS, completion.status);
    if (completion.opcode != IBV_WC_RECV) continue;
    EXPECT_EQ(static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM), completion.wc_flags);
    EXPECT_EQ(0x11223344u, completion.imm_data);
  }
}

TEST_F(Datagrams, InlineDataMayChangeAfterThePost) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_receive(qp.get(), 1));
  std::uint64_t word = 0x0123456789abcdef;
  ibv_sge sge{reinterpret_cast<std::uint64_t>(&word), sizeof word, 0};  // no key is looked at
  ibv_send_wr request = send_request(&sge, ah.get(), qp->qp_num);
  request.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  word = 0;
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
  std::memcpy(&word, receiving() + kGrh, sizeof word);
  EXPECT_EQ(0x0123456789abcdefu, word);
}

TEST_F(Datagrams, GatherAndScatterListsAreFollowed) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  std::memset(sending(), 1, 100);
  std::memset(sending() + 1000, 2, 50);
  ibv_sge gather[] = {send_sge(100), send_sge(50, 1000)};
  ibv_sge scatter[] = {receive_sge(60), receive_sge(500, 2000)};
  ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = scatter, .num_sge = 2};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp.get(), &receive, &bad_receive));
  ibv_send_wr request = send_request(gather, ah.get(), qp->qp_num);
  request.num_sge = 2;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) ASSERT_EQ(IBV_WC_SUCCESS, completion.status);
  EXPECT_EQ(std::byte{1}, receiving()[kGrh]);
  EXPECT_EQ(std::byte{1}, receiving()[2000]);
  EXPECT_EQ(std::byte{1}, receiving()[2000 + 79]);
  EXPECT_EQ(std::byte{2}, receiving()[2000 + 80]);
}

TEST_F(Datagrams, AnUnsignaledSendCompletesSilently) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_receive(qp.get(), 1));
  ibv_sge sge = send_sge(8);
  ibv_send_wr request = send_request(&sge, ah.get(), qp->qp_num);
  request.send_flags = 0;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  EXPECT_EQ(IBV_WC_RECV, take_completions(cq_.get(), 1)[0].opcode);
  ibv_wc more{};
  EXPECT_EQ(0, ibv_poll_cq(cq_.get(), 1, &more));
}

TEST_F(Datagrams, AnEmptyListIsPostedWithoutHarm) {
  auto qp = make_ready_qp();
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(0, ibv_post_send(qp.get(), nullptr, &bad_send));
  EXPECT_EQ(0, ibv_post_recv(qp.get(), nullptr, &bad_receive));
  ibv_wc completion{};
  EXPECT_EQ(0, ibv_poll_cq(cq_.get(), 0, &completion));
  EXPECT_EQ(0, ibv_poll_cq(cq_.get(), -1, &completion));
}

TEST_F(Datagrams, ABadRequestStopsTheListAndIsNamed) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_sge sge = send_sge(8);
  ibv_send_wr requests[3];
  for (int i = 0; i < 3; ++i) {
    requests[i] = send_request(&sge, ah.get(), 0xfffff0, static_cast<std::uint64_t>(i));
    requests[i].next = i < 2 ? &requests[i + 1] : nullptr;
  }
  requests[1].num_sge = 100;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp.get(), requests, &bad));
  EXPECT_EQ(&requests[1], bad);
  const auto done = take_completions(cq_.get(), 1);
  EXPECT_EQ(0u, done[0].wr_id);
  EXPECT_EQ(IBV_WC_SUCCESS, done[0].status);
  ibv_wc more{};
  EXPECT_EQ(0, ibv_poll_cq(cq_.get(), 1, &more));
}

struct BadSend {
  const char* name;
  void (*spoil)(ibv_send_wr&);
};

TEST_F(Datagrams, EveryBadSendIsRefused) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  const BadSend cases[] = {
      {"no address handle", [](ibv_send_wr& r) { r.wr.ud.ah = nullptr; }},
      {"too many sges", [](ibv_send_wr& r) { r.num_sge = 33; }},
      {"a negative number of sges", [](ibv_send_wr& r) { r.num_sge = -1; }},
      {"a flag that does not exist", [](ibv_send_wr& r) { r.send_flags |= 1U << 5; }},
      {"a checksum that is not offered", [](ibv_send_wr& r) { r.send_flags |= IBV_SEND_IP_CSUM; }},
      {"an opcode that does not exist", [](ibv_send_wr& r) { r.opcode = static_cast<ibv_wr_opcode>(13); }},
      {"too much inline data",
       [](ibv_send_wr& r) {
         r.send_flags |= IBV_SEND_INLINE;
         r.sg_list->length = 4000;
       }},
  };
  for (const BadSend& one : cases) {
    ibv_sge sge = send_sge(8);
    ibv_send_wr request = send_request(&sge, ah.get(), qp->qp_num);
    one.spoil(request);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(EINVAL, ibv_post_send(qp.get(), &request, &bad)) << one.name;
    EXPECT_EQ(&request, bad) << one.name;
  }
  EXPECT_EQ(IBV_QPS_RTS, qp->state);
}

TEST_F(Datagrams, PostingBeforeItsStateIsRefused) {
  auto qp = make_qp();
  auto ah = make_ah();
  EXPECT_EQ(EINVAL, post_receive(qp.get(), 1));
  EXPECT_EQ(EINVAL, post_send(qp.get(), ah.get(), 1, 8));
  ASSERT_EQ(0, to_init(qp.get()));
  EXPECT_EQ(0, post_receive(qp.get(), 1));
  EXPECT_EQ(EINVAL, post_send(qp.get(), ah.get(), 1, 8));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTR));
  EXPECT_EQ(EINVAL, post_send(qp.get(), ah.get(), 1, 8));
}

TEST_F(Datagrams, AFullReceiveQueueSaysSo) {
  auto qp = make_ready_qp();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_CAP, &init));
  for (std::uint32_t i = 0; i < init.cap.max_recv_wr; ++i) ASSERT_EQ(0, post_receive(qp.get(), i));
  EXPECT_EQ(ENOMEM, post_receive(qp.get(), 999));
}

TEST_F(Datagrams, ASendKeepsItsPlaceUntilItsCompletionIsPolled) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_CAP, &init));
  // Nothing is posted to receive: all is sent, and dropped at the other side.
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < init.cap.max_send_wr; ++i) ASSERT_EQ(0, post_send(qp.get(), ah.get(), 1, 8, i));
    EXPECT_EQ(ENOMEM, post_send(qp.get(), ah.get(), 1, 8, 99));
    take_completions(cq_.get(), 1);
    EXPECT_EQ(0, post_send(qp.get(), ah.get(), 1, 8, 99)) << "one was polled";
    EXPECT_EQ(ENOMEM, post_send(qp.get(), ah.get(), 1, 8, 100));
    take_completions(cq_.get(), init.cap.max_send_wr);
  }
}

TEST_F(Datagrams, AResetGivesEveryPlaceBack) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_CAP, &init));
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < init.cap.max_recv_wr; ++i) ASSERT_EQ(0, post_receive(qp.get(), i));
    for (std::uint32_t i = 0; i < init.cap.max_send_wr; ++i) {
      ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8, i));
    }
    EXPECT_EQ(ENOMEM, post_send(qp.get(), ah.get(), qp->qp_num, 8));
    ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RESET));
    ibv_wc completion{};
    EXPECT_EQ(0, ibv_poll_cq(cq_.get(), 1, &completion)) << "its completions went with it";
    to_ready(qp.get());
  }
}

TEST_F(Datagrams, AReceiveKeepsItsPlaceUntilItsCompletionIsPolled) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_CAP, &init));
  for (std::uint32_t i = 0; i < init.cap.max_recv_wr; ++i) ASSERT_EQ(0, post_receive(qp.get(), 1000 + i));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
  EXPECT_EQ(ENOMEM, post_receive(qp.get(), 1)) << "received or not, nothing was polled";
  take_completions(cq_.get(), 2);
  EXPECT_EQ(0, post_receive(qp.get(), 1));
  EXPECT_EQ(ENOMEM, post_receive(qp.get(), 2));
}

TEST_F(Datagrams, AnAddressHandleOfAnotherPdFailsTheSend) {
  auto qp = make_ready_qp();
  Owned<ibv_pd> other(ibv_alloc_pd(context_.get()));
  ibv_ah_attr attributes = address_of(gid_);
  Owned<ibv_ah> ah(ibv_create_ah(other.get(), &attributes));
  ASSERT_TRUE(ah);
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
  EXPECT_EQ(IBV_WC_LOC_QP_OP_ERR, take_completions(cq_.get(), 1)[0].status);
}

TEST_F(Datagrams, AWrongKeyIsAProtectionErrorAndSqeIsRecoverable) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_sge sge = send_sge(8);
  sge.lkey ^= 0xff00;
  ibv_send_wr request = send_request(&sge, ah.get(), qp->qp_num, 5);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
  const auto failed = take_completions(cq_.get(), 1);
  EXPECT_EQ(5u, failed[0].wr_id);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, failed[0].status);
  EXPECT_EQ(qp->qp_num, failed[0].qp_num);

  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_STATE, &init));
  EXPECT_EQ(IBV_QPS_SQE, attributes.qp_state);
  EXPECT_EQ(IBV_QPS_SQE, qp->state);
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8, 6));
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, take_completions(cq_.get(), 1)[0].status);

  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, post_receive(qp.get(), 7));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8, 8));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
}

TEST_F(Datagrams, ALongerPayloadThanTheMtuIsALengthError) {
  auto qp = make_ready_qp();
  auto ah = make_ah();
  ibv_port_attr port{};
  ASSERT_EQ(0, ibv_query_port(context_.get(), kPort, &port));
  const std::uint32_t mtu = 128u << port.active_mtu;
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, mtu + 1));
  EXPECT_EQ(IBV_WC_LOC_LEN_ERR, take_completions(cq_.get(), 1)[0].status);
}

TEST_F(Datagrams, OneSidedOperationsAreQpOperationErrors) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    auto qp = make_ready_qp();
    ibv_sge sge = send_sge(8);
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = 0xdeadbeef;  // where a datagram has its address handle
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad)) << opcode;
    EXPECT_EQ(IBV_WC_LOC_QP_OP_ERR, take_completions(cq_.get(), 1)[0].status) << opcode;
  }
}

TEST_F(Datagrams, TheErrorStateFlushesReceivesInOrder) {
  auto qp = make_ready_qp();
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(0, post_receive(qp.get(), id));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_ERR));
  const auto flushed = take_completions(cq_.get(), 4);
  for (std::uint64_t id = 0; id < 4; ++id) {
    EXPECT_EQ(id, flushed[id].wr_id);
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, flushed[id].status);
  }
}

TEST_F(Datagrams, AnAnswerGoesWhereTheDatagramCameFrom) {
  auto server = make_ready_qp();
  auto client = make_ready_qp();
  auto ah = make_ah();
  ASSERT_EQ(0, post_receive(server.get(), 1));
  ASSERT_EQ(0, post_send(client.get(), ah.get(), server->qp_num, 16));
  ibv_wc received{};
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) {
    if (completion.opcode == IBV_WC_RECV) received = completion;
  }
  ibv_grh grh;
  std::memcpy(&grh, receiving(), sizeof grh);
  ibv_ah_attr attributes{};
  ASSERT_EQ(0, ibv_init_ah_from_wc(context_.get(), kPort, &received, &grh, &attributes));
  EXPECT_EQ(1, attributes.is_global);
  EXPECT_EQ(kPort, attributes.port_num);
  EXPECT_EQ(gid_.gid_index, attributes.grh.sgid_index);
  EXPECT_EQ(64, attributes.grh.hop_limit);
  EXPECT_EQ(0, std::memcmp(&gid_.gid, &attributes.grh.dgid, sizeof gid_.gid));

  Owned<ibv_ah> back(ibv_create_ah_from_wc(pd_.get(), &received, &grh, kPort));
  ASSERT_TRUE(back);
  ASSERT_EQ(0, post_receive(client.get(), 2));
  ASSERT_EQ(0, post_send(server.get(), back.get(), received.src_qp, 16));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);

  grh = {};
  errno = 0;
  EXPECT_EQ(-1, ibv_init_ah_from_wc(context_.get(), kPort, &received, &grh, &attributes));
  EXPECT_EQ(EPROTONOSUPPORT, errno);
}

TEST_F(Datagrams, ASharedReceiveQueueFeedsSeveralQueuePairs) {
  ibv_srq_init_attr srq_attributes{nullptr, {8, 1, 0}};
  Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &srq_attributes));
  ASSERT_TRUE(srq);
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  attributes.srq = srq.get();
  Owned<ibv_qp> first(ibv_create_qp(pd_.get(), &attributes));
  Owned<ibv_qp> second(ibv_create_qp(pd_.get(), &attributes));
  to_ready(first.get());
  to_ready(second.get());
  auto sender = make_ready_qp();
  auto ah = make_ah();
  EXPECT_EQ(EINVAL, post_receive(first.get(), 1));  // it has none of its own
  ibv_sge sges[2] = {receive_sge(1000), receive_sge(1000, 1000)};
  ibv_recv_wr requests[2] = {{.wr_id = 10, .next = &requests[1], .sg_list = &sges[0], .num_sge = 1},
                             {.wr_id = 11, .next = nullptr, .sg_list = &sges[1], .num_sge = 1}};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_srq_recv(srq.get(), requests, &bad));
  ASSERT_EQ(0, post_send(sender.get(), ah.get(), first->qp_num, 8));
  take_completions(cq_.get(), 2);
  ASSERT_EQ(0, post_send(sender.get(), ah.get(), second->qp_num, 8));
  bool seen = false;
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) {
    if (completion.opcode != IBV_WC_RECV) continue;
    seen = true;
    EXPECT_EQ(11u, completion.wr_id);
    EXPECT_EQ(second->qp_num, completion.qp_num);
  }
  EXPECT_TRUE(seen);
  ibv_srq_attr queried{};
  ASSERT_EQ(0, ibv_query_srq(srq.get(), &queried));
  EXPECT_GE(queried.max_wr, 8u);
}

// What one process tells the other over a socket.
struct Hello {
  std::uint32_t qpn;
  ibv_gid gid;
};

TEST(TwoProcesses, ExchangeDatagrams) {
  int sockets[2];
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
  const pid_t child = ::fork();
  ASSERT_NE(-1, child);
  const int mine = sockets[child == 0 ? 1 : 0];
  ::close(sockets[child == 0 ? 0 : 1]);
  {
    auto context = open_first_device();
    ASSERT_TRUE(context);
    Owned<ibv_pd> pd(ibv_alloc_pd(context.get()));
    std::vector<std::byte> memory(4096);
    Owned<ibv_mr> mr(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
    Owned<ibv_cq> cq(ibv_create_cq(context.get(), 16, nullptr, nullptr, 0));
    ibv_qp_init_attr init = ud_attributes(cq.get());
    Owned<ibv_qp> qp(ibv_create_qp(pd.get(), &init));
    ASSERT_TRUE(qp);
    to_ready(qp.get());
    const ibv_gid_entry gid = first_gid(context.get());
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory.data()), 2048, mr->lkey};
    ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(0, ibv_post_recv(qp.get(), &receive, &bad_receive));
    const Hello hello{qp->qp_num, gid.gid};
    Hello peer{};
    ASSERT_EQ(static_cast<ssize_t>(sizeof hello), ::write(mine, &hello, sizeof hello));
    ASSERT_EQ(static_cast<ssize_t>(sizeof peer), ::read(mine, &peer, sizeof peer));
    ASSERT_NE(hello.qpn, peer.qpn);
    ibv_ah_attr attributes = address_of(gid);
    attributes.grh.dgid = peer.gid;
    Owned<ibv_ah> ah(ibv_create_ah(pd.get(), &attributes));
    ASSERT_TRUE(ah);
    std::memset(memory.data() + 2048, child == 0 ? 'c' : 'p', 100);
    ibv_sge out{reinterpret_cast<std::uint64_t>(memory.data() + 2048), 100, mr->lkey};
    ibv_send_wr request{};
    request.sg_list = &out;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud = {.ah = ah.get(), .remote_qpn = peer.qpn, .remote_qkey = kQkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(0, ibv_post_send(qp.get(), &request, &bad));
    for (const ibv_wc& completion : take_completions(cq.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    EXPECT_EQ(static_cast<std::byte>(child == 0 ? 'p' : 'c'), memory[kGrh + 99]);
    // Neither leaves before the other has what it sent.
    char end = 0;
    ASSERT_EQ(1, ::write(mine, &end, 1));
    ASSERT_EQ(1, ::read(mine, &end, 1));
  }
  ::close(mine);
  if (child == 0) ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

}  // namespace
}  // namespace verbena::abi
