#include "verbs/attributes.h"

#include <algorithm>

#include "verbs/address.h"

namespace verbena::verbs {
namespace {

bool to_state(ibv_qp_state state, engine::QpState& converted) noexcept {
  if (static_cast<unsigned>(state) >= engine::kQpStates) return false;
  converted = static_cast<engine::QpState>(state);
  return true;
}

// An enumerator that is out of bounds stays so.
std::uint8_t narrow(unsigned value) noexcept {
  return static_cast<std::uint8_t>(std::min(value, 255u));
}

}  // namespace

engine::QpCapabilities to_engine(const ibv_qp_cap& capabilities) noexcept {
  return {.max_send_wr = capabilities.max_send_wr,
          .max_recv_wr = capabilities.max_recv_wr,
          .max_send_sge = capabilities.max_send_sge,
          .max_recv_sge = capabilities.max_recv_sge,
          .max_inline_data = capabilities.max_inline_data};
}

ibv_qp_cap to_verbs(const engine::QpCapabilities& capabilities) noexcept {
  return {.max_send_wr = capabilities.max_send_wr,
          .max_recv_wr = capabilities.max_recv_wr,
          .max_send_sge = capabilities.max_send_sge,
          .max_recv_sge = capabilities.max_recv_sge,
          .max_inline_data = capabilities.max_inline_data};
}

bool to_engine(const ibv_qp_attr& attributes, unsigned mask, engine::QpAttributes& converted) noexcept {
  if ((mask & IBV_QP_STATE) != 0 && !to_state(attributes.qp_state, converted.state)) return false;
  if ((mask & IBV_QP_CUR_STATE) != 0 && !to_state(attributes.cur_qp_state, converted.current_state)) return false;
  if ((mask & IBV_QP_PATH_MTU) != 0) converted.path_mtu = narrow(attributes.path_mtu);
  if ((mask & IBV_QP_PATH_MIG_STATE) != 0) converted.path_migration_state = narrow(attributes.path_mig_state);
  if ((mask & IBV_QP_AV) != 0) converted.address = to_engine(attributes.ah_attr);
  converted.qkey = attributes.qkey;
  converted.receive_psn = attributes.rq_psn;
  converted.send_psn = attributes.sq_psn;
  converted.destination_qpn = attributes.dest_qp_num;
  converted.access = attributes.qp_access_flags;
  converted.pkey_index = attributes.pkey_index;
  converted.sqd_async_notify = attributes.en_sqd_async_notify != 0;
  converted.max_rd_atomic = attributes.max_rd_atomic;
  converted.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  converted.min_rnr_timer = attributes.min_rnr_timer;
  converted.port = attributes.port_num;
  converted.timeout = attributes.timeout;
  converted.retry_count = attributes.retry_cnt;
  converted.rnr_retry = attributes.rnr_retry;
  if ((mask & IBV_QP_RATE_LIMIT) != 0) converted.rate_limit = attributes.rate_limit;
  return true;
}

ibv_qp_attr to_verbs(const engine::QpAttributes& attributes) noexcept {
  ibv_qp_attr converted{};
  converted.qp_state = static_cast<ibv_qp_state>(attributes.state);
  converted.cur_qp_state = static_cast<ibv_qp_state>(attributes.current_state);
  converted.path_mtu = static_cast<ibv_mtu>(attributes.path_mtu);
  converted.path_mig_state = static_cast<ibv_mig_state>(attributes.path_migration_state);
  converted.qkey = attributes.qkey;
  converted.rq_psn = attributes.receive_psn;
  converted.sq_psn = attributes.send_psn;
  converted.dest_qp_num = attributes.destination_qpn;
  converted.qp_access_flags = attributes.access;
  converted.cap = to_verbs(attributes.capabilities);
  converted.ah_attr = to_verbs(attributes.address);
  converted.pkey_index = attributes.pkey_index;
  converted.en_sqd_async_notify = attributes.sqd_async_notify ? 1 : 0;
  converted.sq_draining = attributes.send_queue_draining ? 1 : 0;
  converted.max_rd_atomic = attributes.max_rd_atomic;
  converted.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  converted.min_rnr_timer = attributes.min_rnr_timer;
  converted.port_num = attributes.port;
  converted.timeout = attributes.timeout;
  converted.retry_cnt = attributes.retry_count;
  converted.rnr_retry = attributes.rnr_retry;
  converted.rate_limit = attributes.rate_limit;
  return converted;
}

}  // namespace verbena::verbs
