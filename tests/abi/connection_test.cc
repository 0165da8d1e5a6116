// Queue pairs of connections through the C ABI: a queue pair that is connected to itself.
#include <array>

#include "rig.h"

namespace verbena::abi {
namespace {

class Connections : public Rig {
 protected:
  Owned<ibv_qp> make_connected(ibv_srq* srq = nullptr) {
    ibv_qp_init_attr init = ud_attributes(cq_.get());
    init.qp_type = IBV_QPT_RC;
    init.srq = srq;
    Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &init));
    if (qp != nullptr) connect(qp.get());
    return qp;
  }

  void connect(ibv_qp* qp) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = kPort;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attributes.qp_state = IBV_QPS_RTR;
    attributes.ah_attr = address_of(first_gid(context_.get()));
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = qp->qp_num;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 1;
    ASSERT_EQ(0, ibv_modify_qp(qp, &attributes,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC));
  }

  int post(ibv_qp* qp, ibv_sge sge, std::uint64_t id) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &request, &bad);
  }
};

TEST_F(Connections, ASendArrives) {
  const auto qp = make_connected();
  ASSERT_NE(nullptr, qp);
  std::memset(sending(), 0x5a, 3000);
  ASSERT_EQ(0, post_receive(qp.get(), 7));
  ASSERT_EQ(0, post(qp.get(), send_sge(3000), 1));
  const auto done = take_completions(cq_.get(), 2);
  ASSERT_EQ(2u, done.size());
  for (const ibv_wc& completion : done) EXPECT_EQ(IBV_WC_SUCCESS, completion.status) << completion.wr_id;
  EXPECT_EQ(0, std::memcmp(sending(), receiving(), 3000));
}

// Whichever side finds the fault, nothing that was posted stays without an end.
TEST_F(Connections, ASendThatFailsHereFlushesTheReceivesToo) {
  const auto qp = make_connected();
  ASSERT_NE(nullptr, qp);
  for (std::uint64_t id = 10; id < 13; ++id) ASSERT_EQ(0, post_receive(qp.get(), id, 64));
  ibv_sge nowhere = send_sge(64);
  nowhere.lkey ^= 1;
  ASSERT_EQ(0, post(qp.get(), nowhere, 1));
  const auto done = take_completions(cq_.get(), 4);
  ASSERT_EQ(4u, done.size());
  EXPECT_EQ(1u, done[0].wr_id);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, done[0].status);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(9 + i, done[i].wr_id);
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, done[i].status);
  }
}

TEST_F(Connections, ASendThatFailsHereSaysThatTheSharedQueueServesItNoMore) {
  ibv_srq_init_attr attributes{};
  attributes.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &attributes));
  const auto qp = make_connected(srq.get());
  ASSERT_NE(nullptr, qp);
  ibv_sge nowhere = send_sge(64);
  nowhere.lkey ^= 1;
  ASSERT_EQ(0, post(qp.get(), nowhere, 1));
  ASSERT_EQ(1u, take_completions(cq_.get(), 1).size());
  ibv_async_event event{};
  ASSERT_EQ(0, ibv_get_async_event(context_.get(), &event));
  EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
  EXPECT_EQ(qp.get(), event.element.qp);
  ibv_ack_async_event(&event);
}

}  // namespace
}  // namespace verbena::abi
