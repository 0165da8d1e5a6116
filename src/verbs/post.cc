// Posting work requests: from the program's list to the queue pair in one pass, without allocation. At the first
// request that is refused the list stops there, and `bad` names it; those before it stay posted.
#include "verbs/objects.h"
#include "verbs/operations.h"

namespace verbena::verbs {
namespace {

using engine::Sge;

static_assert(sizeof(Sge) == sizeof(ibv_sge) && offsetof(Sge, address) == offsetof(ibv_sge, addr) &&
              offsetof(Sge, length) == offsetof(ibv_sge, length) && offsetof(Sge, lkey) == offsetof(ibv_sge, lkey));

// Whether the list may be looked at. A negative count becomes a very large one.
bool fits(int count, std::uint32_t room) noexcept {
  return static_cast<unsigned>(count) <= room;
}

std::span<const Sge> sges_of(const ibv_sge* list, int count) noexcept {
  return {reinterpret_cast<const Sge*>(list), static_cast<unsigned>(count)};
}

// A number too large for an opcode is none.
engine::SendOpcode opcode_of(const ibv_send_wr& request) noexcept {
  const auto number = static_cast<unsigned>(request.opcode);
  return static_cast<engine::SendOpcode>(number <= UINT8_MAX ? number : UINT8_MAX);
}

void take_datagram(const ibv_send_wr& request, engine::SendRequest& posted) noexcept {
  ibv_ah* const ah = request.wr.ud.ah;
  posted.address = ah == nullptr ? nullptr : &ours(ah).machine->engine();
  posted.remote_qpn = request.wr.ud.remote_qpn;
  posted.remote_qkey = request.wr.ud.remote_qkey;
}

void take_window(const ibv_send_wr& request, engine::SendRequest& posted) noexcept {
  const ibv_mw* const mw = request.bind_mw.mw;
  if (mw == nullptr) return;  // the key 0 names no window: the bind fails when its turn comes
  set_window(*mw, request.bind_mw.rkey, request.bind_mw.bind_info, posted);
}

// What the union of a work request holds depends on the type of its queue pair and on its opcode.
void take_target(const ibv_send_wr& request, bool datagram, engine::SendRequest& posted) noexcept {
  switch (request.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      if (datagram) take_datagram(request, posted);
      break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_WRITE:
      posted.remote_address = request.wr.rdma.remote_addr;
      posted.rkey = MemoryKey(request.wr.rdma.rkey);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      posted.remote_address = request.wr.atomic.remote_addr;
      posted.rkey = MemoryKey(request.wr.atomic.rkey);
      posted.compare_add = request.wr.atomic.compare_add;
      posted.swap = request.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      take_window(request, posted);
      break;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1:
      break;
  }
}

engine::SendRequest to_engine(const ibv_send_wr& request, bool datagram) noexcept {
  engine::SendRequest posted;
  posted.wr_id = request.wr_id;
  posted.opcode = opcode_of(request);
  posted.flags = request.send_flags;
  posted.immediate = request.imm_data;  // of the same union as the key to invalidate
  posted.sges = sges_of(request.sg_list, request.num_sge);
  posted.shared_queue = request.qp_type.xrc.remote_srqn;
  take_target(request, datagram, posted);
  return posted;
}

// Posts `request` and those behind it by `post`. 0, or the errno of the one that `bad` names then.
template <class Request, class Post>
int post_list(Request* request, Request** bad, Post post) noexcept {
  for (; request != nullptr; request = request->next) {
    if (const int error = post(*request)) {
      if (bad != nullptr) *bad = request;
      return error;
    }
  }
  return 0;
}

template <class Request>
int refuse_child(Request* request, Request** bad) noexcept {
  if (bad != nullptr) *bad = request;
  return device::Context::refuse_child();
}

}  // namespace

void set_window(const ibv_mw& mw, std::uint32_t key, const ibv_mw_bind_info& info,
                engine::SendRequest& request) noexcept {
  request.window = MemoryKey(mw.rkey);
  request.rkey = MemoryKey(key);
  request.window_type = static_cast<engine::WindowType>(mw.type);
  request.region = MemoryKey(info.mr == nullptr ? 0 : info.mr->lkey);
  request.remote_address = info.addr;
  request.compare_add = info.length;
  request.access = info.mw_access_flags;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  device::QueuePair& machine = *ours(qp).machine;
  if (!machine.context().alive()) return refuse_child(request, bad);
  const bool datagram = qp->qp_type == IBV_QPT_UD;
  device::QueuePair::SendBatch batch(machine);
  const std::uint32_t room = machine.capabilities().max_send_sge;
  return post_list(request, bad, [&](const ibv_send_wr& one) {
    return fits(one.num_sge, room) ? batch.post(to_engine(one, datagram)) : EINVAL;
  });
}

int post_receive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  device::QueuePair& machine = *ours(qp).machine;
  if (!machine.context().alive()) return refuse_child(request, bad);
  device::QueuePair::ReceiveBatch batch(machine);
  return post_list(request, bad,
                   [&](const ibv_recv_wr& one) { return batch.post(one.wr_id, sges_of(one.sg_list, one.num_sge)); });
}

int post_shared_receive(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) noexcept {
  device::SharedReceiveQueue& machine = *ours(srq).machine;
  if (!machine.context().alive()) return refuse_child(request, bad);
  return post_list(request, bad,
                   [&](const ibv_recv_wr& one) { return machine.post(one.wr_id, sges_of(one.sg_list, one.num_sge)); });
}

}  // namespace verbena::verbs
