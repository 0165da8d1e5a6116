#include "ud_endpoint.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>

namespace e2e {

void die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

UdEndpoint::UdEndpoint(const EndpointOptions& options)
    : options_(options),
      stride_(kGrhBytes + options.message_bytes),
      send_offset_(stride_ * options.receives),
      memory_(send_offset_ + options.message_bytes * options.sends) {
  context_ = open_first_device();
  make_queue_pair();
  to_ready_to_send(qp_, options_.port);
  for (std::uint64_t slot = 0; slot < options_.receives; ++slot) post_receive(slot);
}

UdEndpoint::~UdEndpoint() {
  errno = ibv_destroy_qp(qp_);
  if (errno != 0) die("ibv_destroy_qp");
  errno = ibv_destroy_cq(cq_);
  if (errno != 0) die("ibv_destroy_cq");
  errno = ibv_dereg_mr(mr_);
  if (errno != 0) die("ibv_dereg_mr");
  errno = ibv_dealloc_pd(pd_);
  if (errno != 0) die("ibv_dealloc_pd");
  if (ibv_close_device(context_) != 0) die("ibv_close_device");
}

ibv_context* open_first_device() {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) die("no verbs device");
  ibv_context* context = ibv_open_device(devices[0]);
  if (context == nullptr) die("ibv_open_device");
  ibv_free_device_list(devices);
  return context;
}

void UdEndpoint::make_queue_pair() {
  pd_ = ibv_alloc_pd(context_);
  if (pd_ == nullptr) die("ibv_alloc_pd");
  mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) die("ibv_reg_mr");
  cq_ = ibv_create_cq(context_, static_cast<int>(options_.receives + options_.sends), nullptr, nullptr, 0);
  if (cq_ == nullptr) die("ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.cap.max_send_wr = options_.sends;
  init.cap.max_recv_wr = options_.receives;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  init.qp_type = IBV_QPT_UD;
  init.sq_sig_all = 1;
  qp_ = ibv_create_qp(pd_, &init);
  if (qp_ == nullptr) die("ibv_create_qp");
}

void to_ready_to_send(ibv_qp* qp, std::uint8_t port) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.qkey = kQkey;
  errno = ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (errno != 0) die("ibv_modify_qp to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  errno = ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
  if (errno != 0) die("ibv_modify_qp to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  errno = ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (errno != 0) die("ibv_modify_qp to RTS");
}

std::string gid_text(ibv_context* context, int gid_index, std::uint8_t port) {
  ibv_gid gid{};
  if (ibv_query_gid(context, port, gid_index, &gid) != 0) die("ibv_query_gid");
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  return text;
}

ibv_ah* make_address_handle(ibv_pd* pd, int gid_index, const std::string& gid, std::uint8_t port) {
  ibv_ah_attr attributes{};
  if (inet_pton(AF_INET6, gid.c_str(), attributes.grh.dgid.raw) != 1) die("not a GID: " + gid);
  attributes.is_global = 1;
  attributes.port_num = port;
  attributes.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
  attributes.grh.hop_limit = 64;
  ibv_ah* handle = ibv_create_ah(pd, &attributes);
  if (handle == nullptr) die("ibv_create_ah to " + gid);
  return handle;
}

int UdEndpoint::post_send(std::uint32_t index, std::size_t bytes, ibv_ah* handle, std::uint32_t qpn) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(send_slot(index)), static_cast<std::uint32_t>(bytes), mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSendMark | index;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = qpn;
  request.wr.ud.remote_qkey = kQkey;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp_, &request, &bad);
}

void UdEndpoint::post_receive(std::uint64_t slot) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data() + slot * stride_), static_cast<std::uint32_t>(stride_),
                mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(qp_, &request, &bad);
  if (errno != 0) die("ibv_post_recv");
}

}  // namespace e2e
