// The sizes and offsets of the verbs ABI that this room relies on, held against the installed header at compile time.
// Numbers are those of rdma-core 44 on a 64-bit machine; programs built with a later one see the same places.
#include <cstddef>

#include "verbs/verbs_api.h"

namespace {

static_assert(sizeof(void*) == 8);

// The extended context grows at its front; `sz` says where it ends, `context` is what programs hold.
static_assert(sizeof(verbs_context) == 648);
static_assert(offsetof(verbs_context, query_port) == 0);
static_assert(offsetof(verbs_context, create_cq_ex) == 200);
static_assert(offsetof(verbs_context, priv) == 208);
static_assert(offsetof(verbs_context, query_device_ex) == 216);
static_assert(offsetof(verbs_context, create_qp_ex) == 264);
static_assert(offsetof(verbs_context, sz) + sizeof(std::size_t) == offsetof(verbs_context, context));
static_assert(offsetof(verbs_context, context) + sizeof(ibv_context) == sizeof(verbs_context));

static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, cmd_fd) == 264);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, abi_compat) == 320);
static_assert(sizeof(ibv_context_ops) == 256);
static_assert(offsetof(ibv_context_ops, alloc_mw) == 56);
static_assert(offsetof(ibv_context_ops, bind_mw) == 64);
static_assert(offsetof(ibv_context_ops, dealloc_mw) == 72);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, req_notify_cq) == 96);
static_assert(offsetof(ibv_context_ops, post_srq_recv) == 160);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context_ops, post_recv) == 208);

static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, name) == 24);
static_assert(offsetof(ibv_device, dev_name) == 88);
static_assert(offsetof(ibv_device, dev_path) == 152);
static_assert(offsetof(ibv_device, ibdev_path) == 408);

static_assert(sizeof(ibv_comp_channel) == 16 && offsetof(ibv_comp_channel, refcnt) == 12);
static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_mr) == 48 && offsetof(ibv_mr, lkey) == 36);
static_assert(sizeof(ibv_mw) == 32);
static_assert(sizeof(ibv_ah) == 24);
static_assert(sizeof(ibv_xrcd) == 8);
static_assert(sizeof(ibv_srq) == 128 && offsetof(ibv_srq, events_completed) == 120);

static_assert(sizeof(ibv_cq) == 128 && offsetof(ibv_cq, async_events_completed) == 124);
static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(offsetof(ibv_cq_ex, async_events_completed) == offsetof(ibv_cq, async_events_completed));
static_assert(offsetof(ibv_cq_ex, status) == 132);
static_assert(offsetof(ibv_cq_ex, wr_id) == 136);
static_assert(offsetof(ibv_cq_ex, start_poll) == 144);
static_assert(offsetof(ibv_cq_ex, read_completion_wallclock_ns) == 280);

static_assert(sizeof(ibv_qp) == 160 && offsetof(ibv_qp, events_completed) == 152);
static_assert(sizeof(ibv_qp_ex) == 352);
static_assert(offsetof(ibv_qp_ex, wr_id) == 168);
static_assert(offsetof(ibv_qp_ex, wr_flags) == 176);
static_assert(offsetof(ibv_qp_ex, wr_send) == 240);
static_assert(offsetof(ibv_qp_ex, wr_set_ud_addr) == 272);
static_assert(offsetof(ibv_qp_ex, wr_start) == 320);
static_assert(offsetof(ibv_qp_ex, wr_atomic_write) == 344);

static_assert(sizeof(ibv_wc) == 48 && offsetof(ibv_wc, dlid_path_bits) == 45);
static_assert(sizeof(ibv_sge) == 16 && offsetof(ibv_sge, lkey) == 12);
static_assert(sizeof(ibv_send_wr) == 128 && offsetof(ibv_send_wr, wr) == 40);
static_assert(sizeof(ibv_recv_wr) == 32 && offsetof(ibv_recv_wr, num_sge) == 24);
static_assert(sizeof(ibv_ah_attr) == 32 && offsetof(ibv_ah_attr, port_num) == 30);
static_assert(sizeof(ibv_global_route) == 24 && offsetof(ibv_global_route, sgid_index) == 20);
static_assert(sizeof(ibv_grh) == 40);
static_assert(sizeof(ibv_qp_init_attr) == 64);
static_assert(sizeof(ibv_qp_init_attr_ex) == 136 && offsetof(ibv_qp_init_attr_ex, comp_mask) == 60);
static_assert(offsetof(ibv_qp_init_attr_ex, cap) == offsetof(ibv_qp_init_attr, cap));
static_assert(sizeof(ibv_qp_attr) == 144 && offsetof(ibv_qp_attr, rate_limit) == 136);
static_assert(sizeof(ibv_gid_entry) == 32);
static_assert(sizeof(ibv_async_event) == 16);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_device_attr_ex) == 400);
// The exported ibv_query_port() fills what stands before port_cap_flags2, and not a byte more.
static_assert(sizeof(ibv_port_attr) == 52 && offsetof(ibv_port_attr, port_cap_flags2) == 48);

}  // namespace
