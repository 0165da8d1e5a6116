// The ibv_wr_* calls: a send is begun by what it does, then told where to and with what, and posted with its list.
#include "verbs/objects.h"
#include "verbs/operations.h"

namespace verbena::verbs {
namespace {

void start(ibv_qp_ex* qp) {
  ours(qp).staging.start();
}

int complete(ibv_qp_ex* qp) {
  return ours(qp).staging.complete(*ours(qp).machine);
}

void abort(ibv_qp_ex* qp) {
  ours(qp).staging.abort();
}

// A new send, if the queue pair was made for its kind; a list with any other is not posted.
void begin(ibv_qp_ex* qp, std::uint64_t kind, engine::SendOpcode opcode, std::uint32_t immediate = 0) {
  if ((ours(qp).send_ops & kind) == 0) return ours(qp).staging.refuse(EINVAL);
  ours(qp).staging.add(qp->wr_id, qp->wr_flags, opcode, immediate);
}

void send(ibv_qp_ex* qp) {
  begin(qp, IBV_QP_EX_WITH_SEND, engine::SendOpcode::kSend);
}

void send_immediate(ibv_qp_ex* qp, __be32 immediate) {
  begin(qp, IBV_QP_EX_WITH_SEND_WITH_IMM, engine::SendOpcode::kSendWithImmediate, immediate);
}

void set_destination(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
  ours(qp).staging.set_destination(ah == nullptr ? nullptr : &ours(ah).machine->engine(), remote_qpn, remote_qkey);
}

void set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const engine::Sge sge{address, length, lkey};
  ours(qp).staging.set_sges({&sge, 1});
}

void set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  ours(qp).staging.set_sges({reinterpret_cast<const engine::Sge*>(list), count});
}

void set_inline(ibv_qp_ex* qp, void* data, std::size_t size) {
  ours(qp).staging.append_inline(data, size);
}

void set_inline_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  for (std::size_t i = 0; i < count; ++i) ours(qp).staging.append_inline(list[i].addr, list[i].length);
  if (count == 0) ours(qp).staging.append_inline(nullptr, 0);
}

// --- on connections

void send_invalidate(ibv_qp_ex* qp, std::uint32_t rkey) {
  begin(qp, IBV_QP_EX_WITH_SEND_WITH_INV, engine::SendOpcode::kSendWithInvalidate, rkey);
}

void rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin(qp, IBV_QP_EX_WITH_RDMA_READ, engine::SendOpcode::kRdmaRead);
  ours(qp).staging.set_target(rkey, address);
}
void rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  begin(qp, IBV_QP_EX_WITH_RDMA_WRITE, engine::SendOpcode::kRdmaWrite);
  ours(qp).staging.set_target(rkey, address);
}
void rdma_write_immediate(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
  begin(qp, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, engine::SendOpcode::kRdmaWriteWithImmediate, immediate);
  ours(qp).staging.set_target(rkey, address);
}

void compare_swap(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare, std::uint64_t swap) {
  begin(qp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, engine::SendOpcode::kCompareSwap);
  ours(qp).staging.set_target(rkey, address, compare, swap);
}
void fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
  begin(qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, engine::SendOpcode::kFetchAdd);
  ours(qp).staging.set_target(rkey, address, add);
}
void atomic_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, const void* value) {
  begin(qp, IBV_QP_EX_WITH_ATOMIC_WRITE, engine::SendOpcode::kAtomicWrite);
  ours(qp).staging.set_target(rkey, address);
  ours(qp).staging.append_inline(value, sizeof(std::uint64_t));
}

void set_shared_queue(ibv_qp_ex* qp, std::uint32_t number) {
  ours(qp).staging.set_shared_queue(number);
}

void bind_window(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  begin(qp, IBV_QP_EX_WITH_BIND_MW, engine::SendOpcode::kBindMemoryWindow);
  if (auto* const request = ours(qp).staging.current(); request != nullptr && mw != nullptr) {
    set_window(*mw, rkey, *info, *request);
  }
}
void local_invalidate(ibv_qp_ex* qp, std::uint32_t rkey) {
  begin(qp, IBV_QP_EX_WITH_LOCAL_INV, engine::SendOpcode::kLocalInvalidate, rkey);
}

// No queue pair of ours is made for it: the program did not get it granted, and calls it all the same.
void refuse_segmented(ibv_qp_ex* qp, void*, std::uint16_t, std::uint16_t) {
  ours(qp).staging.refuse(EINVAL);
}

}  // namespace

void set_extended_send(ibv_qp_ex& qp) noexcept {
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = abort;
  qp.wr_send = send;
  qp.wr_send_imm = send_immediate;
  qp.wr_set_ud_addr = set_destination;
  qp.wr_set_sge = set_sge;
  qp.wr_set_sge_list = set_sge_list;
  qp.wr_set_inline_data = set_inline;
  qp.wr_set_inline_data_list = set_inline_list;

  qp.wr_rdma_read = rdma_read;
  qp.wr_rdma_write = rdma_write;
  qp.wr_rdma_write_imm = rdma_write_immediate;
  qp.wr_atomic_cmp_swp = compare_swap;
  qp.wr_atomic_fetch_add = fetch_add;
  qp.wr_atomic_write = atomic_write;
  qp.wr_send_inv = send_invalidate;
  qp.wr_set_xrc_srqn = set_shared_queue;
  qp.wr_bind_mw = bind_window;
  qp.wr_local_inv = local_invalidate;
  qp.wr_send_tso = refuse_segmented;
}

}  // namespace verbena::verbs
