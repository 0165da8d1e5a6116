// The calls that programs reach through pointers in a context or an object, past every export.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/queue_pair.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

// completion_queue.cc, poll.cc
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) noexcept;
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) noexcept;
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) noexcept;
int request_notification(ibv_cq* cq, int solicited_only) noexcept;
void set_polling(ibv_cq_ex& cq) noexcept;

// query.cc
int query_rt_values(ibv_context* context, ibv_values_ex* values) noexcept;

// protection_domain.cc
ibv_td* alloc_thread_domain(ibv_context* context, ibv_td_init_attr* attributes) noexcept;
int dealloc_thread_domain(ibv_td* td) noexcept;
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) noexcept;

// xrc_domain.cc
ibv_xrcd* open_xrc_domain(ibv_context* context, ibv_xrcd_init_attr* attributes) noexcept;
int close_xrc_domain(ibv_xrcd* xrcd) noexcept;

// memory.cc
ibv_mr* alloc_null_mr(ibv_pd* pd) noexcept;
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
              std::uint32_t count) noexcept;

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) noexcept;

// device_memory.cc
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes) noexcept;
int free_dm(ibv_dm* dm) noexcept;

// memory_window.cc
ibv_mw* alloc_window(ibv_pd* pd, ibv_mw_type type) noexcept;
int dealloc_window(ibv_mw* mw) noexcept;
int bind_window(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* binding) noexcept;

// shared_receive_queue.cc
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) noexcept;
int get_srq_number(ibv_srq* srq, std::uint32_t* number) noexcept;

// queue_pair.cc, extended_send.cc
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) noexcept;
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes) noexcept;
void set_extended_send(ibv_qp_ex& qp) noexcept;

// flow.cc
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) noexcept;
int destroy_flow(ibv_flow* flow) noexcept;

// post.cc
// What a bind request asks, of the window as the program sees it.
void set_window(const ibv_mw& mw, std::uint32_t key, const ibv_mw_bind_info& info,
                engine::SendRequest& request) noexcept;
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) noexcept;
int post_receive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;
int post_shared_receive(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) noexcept;

}  // namespace verbena::verbs
