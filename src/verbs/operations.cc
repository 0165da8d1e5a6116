// Which of our calls stands where in a context. What is left null is answered with EOPNOTSUPP by the inline functions
// of verbs.h: work queues, counters, the rate limits of ibv_modify_qp_rate_limit().
#include "verbs/operations.h"

#include <cerrno>

#include "verbs/context.h"
#include "verbs/query.h"

namespace verbena::verbs {
void set_operations(verbs_context& extended) noexcept {
  ibv_context_ops& operations = extended.context.ops;
  operations._compat_query_device = ibv_query_device;
  operations._compat_query_port = ibv_query_port;
  operations.alloc_mw = alloc_window;
  operations.bind_mw = bind_window;
  operations.dealloc_mw = dealloc_window;
  operations.poll_cq = poll_cq;
  operations.req_notify_cq = request_notification;
  operations.post_srq_recv = post_shared_receive;
  operations.post_send = post_send;
  operations.post_recv = post_receive;

  extended.query_port = query_port;
  extended.advise_mr = advise_mr;
  extended.alloc_dm = alloc_dm;
  extended.free_dm = free_dm;
  extended.reg_dm_mr = reg_dm_mr;
  extended.alloc_null_mr = alloc_null_mr;
  extended.query_device_ex = query_device_ex;
  extended.create_cq_ex = create_cq_ex;
  extended.modify_cq = modify_cq;
  extended.query_rt_values = query_rt_values;
  extended.create_qp_ex = create_qp_ex;
  extended.open_qp = open_qp;
  extended.create_srq_ex = create_srq_ex;
  extended.get_srq_num = get_srq_number;
  extended.open_xrcd = open_xrc_domain;
  extended.close_xrcd = close_xrc_domain;
  extended.alloc_td = alloc_thread_domain;
  extended.dealloc_td = dealloc_thread_domain;
  extended.alloc_parent_domain = alloc_parent_domain;
  extended.ibv_create_flow = create_flow;
  extended.ibv_destroy_flow = destroy_flow;
}

}  // namespace verbena::verbs
