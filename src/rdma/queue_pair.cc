#include "verbena/queue_pair.h"

#include <cerrno>

#include <fmt/format.h>

#include "rdma/verbs_error.h"

namespace verbena {

namespace {

constexpr std::uint32_t kOwnQkeyBit = 0x80000000;

std::string options_in_words(const UdOptions& options) {
  return fmt::format("max_send {}, max_receive {}, max_send_sge {}, max_receive_sge {}, max_inline {}",
                     options.max_send, options.max_receive, options.max_send_sge, options.max_receive_sge,
                     options.max_inline);
}

Status modify(ibv_qp* pair, ibv_qp_attr& attributes, int mask, const std::string& edge) {
  if (const int code = ibv_modify_qp(pair, &attributes, mask); code != 0) {
    return rdma::verbs_failure("ibv_modify_qp", fmt::format("of queue pair {:#x} {}", pair->qp_num, edge),
                               rdma::errno_of(code));
  }
  return {};
}

Status bring_to_send(ibv_qp* pair, const UdOptions& options) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = options.pkey_index;
  attributes.port_num = options.port;
  attributes.qkey = options.qkey;
  Status status = modify(
      pair, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
      fmt::format("to INIT (port {}, pkey_index {}, qkey {:#x})", options.port, options.pkey_index, options.qkey));
  if (!status) return status;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  status = modify(pair, attributes, IBV_QP_STATE, "to RTR");
  if (!status) return status;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = options.first_psn;
  return modify(pair, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN,
                fmt::format("to RTS (first_psn {:#x})", options.first_psn));
}

}  // namespace

namespace {

tl::unexpected<Error> is_empty() {
  return failure(ErrorCode::kInvalidArgument,
                 "the queue pair is empty: moved from, closed, or not made by create_ud()");
}

}  // namespace

Result<QueuePair> QueuePair::create_ud(const ProtectionDomain& domain, const CompletionQueue& send_queue,
                                       const CompletionQueue& receive_queue, const UdOptions& options, CallSite place) {
  if (!domain || !send_queue || !receive_queue) {
    return failure(ErrorCode::kInvalidArgument, "a queue pair needs a protection domain and two completion queues");
  }
  if ((options.qkey & kOwnQkeyBit) != 0) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("qkey {:#x} has bit 31 set, which in a work request means \"the queue pair's own\"; "
                               "choose one below 0x80000000",
                               options.qkey));
  }
  ibv_qp_init_attr initial{};
  initial.send_cq = send_queue.get();
  initial.recv_cq = receive_queue.get();
  initial.qp_type = IBV_QPT_UD;
  initial.sq_sig_all = options.signal_all ? 1 : 0;
  initial.cap = {.max_send_wr = options.max_send,
                 .max_recv_wr = options.max_receive,
                 .max_send_sge = options.max_send_sge,
                 .max_recv_sge = options.max_receive_sge,
                 .max_inline_data = options.max_inline};
  ibv_qp* pair = ibv_create_qp(domain.get(), &initial);
  if (pair == nullptr) return rdma::verbs_failure("ibv_create_qp", "(UD, " + options_in_words(options) + ")", errno);
  auto object = std::make_shared<VerbsObject<ibv_qp>>(
      pair, ibv_destroy_qp, "ibv_destroy_qp", fmt::format("queue pair {:#x}", pair->qp_num),
      std::vector<Keeper>{domain.keeper(), send_queue.keeper(), receive_queue.keeper()});
  object->note_alive(place, domain.get());
  detail::note_uses(object.get(), send_queue.keeper().get());
  detail::note_uses(object.get(), receive_queue.keeper().get());
  if (Status status = bring_to_send(pair, options); !status) return tl::make_unexpected(status.error());
  return QueuePair(std::move(object), initial.cap.max_inline_data);
}

Status QueuePair::post_receive(DatagramBuffers& buffers, std::size_t index, std::uint64_t wr_id) noexcept {
  if (!object_) return is_empty();
  if (index >= buffers.size()) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("slot {} of {} buffers", index, buffers.size()));
  }
  ibv_sge element = buffers.receive_sge(index);
  ibv_recv_wr request{};
  request.wr_id = wr_id;
  request.sg_list = &element;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  if (const int code = ibv_post_recv(get(), &request, &refused); code != 0) {
    return rdma::verbs_failure("ibv_post_recv", "on " + object_->what(), rdma::errno_of(code));
  }
  return {};
}

Status QueuePair::post_send(const UdPeer& peer, ibv_sge payload, std::uint64_t wr_id, unsigned flags) noexcept {
  if (!object_) return is_empty();
  ibv_send_wr request{};
  request.wr_id = wr_id;
  request.sg_list = &payload;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = flags;
  request.wr.ud.ah = peer.address;
  request.wr.ud.remote_qpn = peer.qpn;
  request.wr.ud.remote_qkey = peer.qkey;
  ibv_send_wr* refused = nullptr;
  if (const int code = ibv_post_send(get(), &request, &refused); code != 0) {
    return rdma::verbs_failure("ibv_post_send", fmt::format("of {} bytes on {}", payload.length, object_->what()),
                               rdma::errno_of(code));
  }
  return {};
}

Status QueuePair::flush() {
  if (!object_) return is_empty();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return modify(get(), attributes, IBV_QP_STATE, "to ERR");
}

}  // namespace verbena
