// Takes an RC queue pair from RESET to RTR and back, again and again, towards an address of another host.
//
//     reconnect GID_INDEX GID SECONDS
//
// Prints `running` when it begins and `rounds N` at its end.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "ud_endpoint.h"

namespace {

using e2e::die;

void step(ibv_qp* qp, ibv_qp_attr attributes, ibv_qp_state to, int mask) {
  attributes.qp_state = to;
  if (ibv_modify_qp(qp, &attributes, IBV_QP_STATE | mask) != 0) die("ibv_modify_qp");
}

void round(ibv_qp* qp, const ibv_qp_attr& attributes) {
  step(qp, attributes, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  step(
      qp, attributes, IBV_QPS_RTR,
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  step(qp, attributes, IBV_QPS_RESET, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) die("three words are needed: GID_INDEX GID SECONDS");
  ibv_qp_attr attributes{};
  attributes.port_num = 1;
  attributes.path_mtu = IBV_MTU_256;
  attributes.dest_qp_num = 17;
  attributes.max_dest_rd_atomic = attributes.min_rnr_timer = 1;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(std::atoi(argv[1]));
  if (inet_pton(AF_INET6, argv[2], attributes.ah_attr.grh.dgid.raw) != 1) die("no GID");

  ibv_context* const context = e2e::open_first_device();
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_cq* const cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) die("ibv_alloc_pd, ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) die("ibv_create_qp");

  std::cout << "running" << std::endl;
  std::uint64_t rounds = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  for (; std::chrono::steady_clock::now() < end; ++rounds) round(qp, attributes);
  std::cout << "rounds " << rounds << std::endl;
  return ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 ? 0 : 1;
}
