// Exports that touch no device: names of enumerators, rates, structure conversions for librdmacm, fork preparation.
// They are answered by the real library, so that programs see the same words with us in front as without.
#include <sys/types.h>

#include "verbs/export.h"
#include "verbs/real.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV10 = "IBVERBS_1.0";
constexpr const char* kV11 = "IBVERBS_1.1";

constinit Real<const char*(ibv_node_type)> real_node_type_str{"ibv_node_type_str", kV11};
constinit Real<const char*(ibv_port_state)> real_port_state_str{"ibv_port_state_str", kV11};
constinit Real<const char*(ibv_event_type)> real_event_type_str{"ibv_event_type_str", kV11};
constinit Real<const char*(ibv_wc_status)> real_wc_status_str{"ibv_wc_status_str", kV11};
constinit Real<int(ibv_rate)> real_rate_to_mult{"ibv_rate_to_mult", kV10};
constinit Real<ibv_rate(int)> real_mult_to_rate{"mult_to_ibv_rate", kV10};
constinit Real<int(ibv_rate)> real_rate_to_mbps{"ibv_rate_to_mbps", kV11};
constinit Real<ibv_rate(int)> real_mbps_to_rate{"mbps_to_ibv_rate", kV11};
constinit Real<void(ibv_ah_attr*, ib_uverbs_ah_attr*)> real_copy_ah_attr{"ibv_copy_ah_attr_from_kern", kV11};
constinit Real<void(ibv_qp_attr*, ib_uverbs_qp_attr*)> real_copy_qp_attr{"ibv_copy_qp_attr_from_kern", kV10};
constinit Real<void(ibv_sa_path_rec*, ib_user_path_rec*)> real_copy_path_from{"ibv_copy_path_rec_from_kern", kV10};
constinit Real<void(ib_user_path_rec*, ibv_sa_path_rec*)> real_copy_path_to{"ibv_copy_path_rec_to_kern", kV10};
constinit Real<int(void)> real_fork_init{"ibv_fork_init", kV11};
constinit Real<ibv_fork_status(void)> real_is_fork_initialized{"ibv_is_fork_initialized", "IBVERBS_1.13"};
constinit Real<int(void*, std::size_t)> real_dontfork_range{"ibv_dontfork_range", kV11};
constinit Real<int(void*, std::size_t)> real_dofork_range{"ibv_dofork_range", kV11};
constinit Real<void(const char*, void*)> real_register_driver{"ibv_register_driver", kV11};

}  // namespace

VERBENA_EXPORT const char* ibv_node_type_str(ibv_node_type type) {
  return real_node_type_str.call_or("unknown", type);
}

VERBENA_EXPORT const char* ibv_port_state_str(ibv_port_state state) {
  return real_port_state_str.call_or("unknown", state);
}

VERBENA_EXPORT const char* ibv_event_type_str(ibv_event_type type) {
  return real_event_type_str.call_or("unknown", type);
}

VERBENA_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return real_wc_status_str.call_or("unknown", status);
}

// Not in rdma-core 44 yet; programs built against a later one ask for it.
VERBENA_EXPORT const char* ibv_wr_opcode_str(ibv_wr_opcode opcode) {
  switch (static_cast<int>(opcode)) {
    case IBV_WR_RDMA_WRITE:
      return "IBV_WR_RDMA_WRITE";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "IBV_WR_RDMA_WRITE_WITH_IMM";
    case IBV_WR_SEND:
      return "IBV_WR_SEND";
    case IBV_WR_SEND_WITH_IMM:
      return "IBV_WR_SEND_WITH_IMM";
    case IBV_WR_RDMA_READ:
      return "IBV_WR_RDMA_READ";
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return "IBV_WR_ATOMIC_CMP_AND_SWP";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return "IBV_WR_ATOMIC_FETCH_AND_ADD";
    case IBV_WR_LOCAL_INV:
      return "IBV_WR_LOCAL_INV";
    case IBV_WR_BIND_MW:
      return "IBV_WR_BIND_MW";
    case IBV_WR_SEND_WITH_INV:
      return "IBV_WR_SEND_WITH_INV";
    case IBV_WR_TSO:
      return "IBV_WR_TSO";
    case IBV_WR_ATOMIC_WRITE:
      return "IBV_WR_ATOMIC_WRITE";
    default:
      return "unknown";
  }
}

VERBENA_EXPORT int ibv_rate_to_mult(ibv_rate rate) {
  return real_rate_to_mult.call_or(-1, rate);
}

VERBENA_EXPORT ibv_rate mult_to_ibv_rate(int mult) {
  return real_mult_to_rate.call_or(IBV_RATE_MAX, mult);
}

VERBENA_EXPORT int ibv_rate_to_mbps(ibv_rate rate) {
  return real_rate_to_mbps.call_or(-1, rate);
}

VERBENA_EXPORT ibv_rate mbps_to_ibv_rate(int mbps) {
  return real_mbps_to_rate.call_or(IBV_RATE_MAX, mbps);
}

VERBENA_EXPORT void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from) {
  real_copy_ah_attr.call(to, from);
}

VERBENA_EXPORT void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from) {
  real_copy_qp_attr.call(to, from);
}

VERBENA_EXPORT void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* to, ib_user_path_rec* from) {
  real_copy_path_from.call(to, from);
}

VERBENA_EXPORT void ibv_copy_path_rec_to_kern(ib_user_path_rec* to, ibv_sa_path_rec* from) {
  real_copy_path_to.call(to, from);
}

// Our devices read and write memory through the CPU, so a fork needs no preparation for their sake.
VERBENA_EXPORT int ibv_fork_init(void) {
  return real_fork_init.call_or(0);
}

VERBENA_EXPORT ibv_fork_status ibv_is_fork_initialized(void) {
  return real_is_fork_initialized.call_or(IBV_FORK_UNNEEDED);
}

VERBENA_EXPORT int ibv_dontfork_range(void* base, std::size_t size) {
  return real_dontfork_range.call_or(0, base, size);
}

VERBENA_EXPORT int ibv_dofork_range(void* base, std::size_t size) {
  return real_dofork_range.call_or(0, base, size);
}

VERBENA_EXPORT void ibv_register_driver(const char* name, void* init) {
  real_register_driver.call(name, init);
}

}  // namespace verbena::verbs
