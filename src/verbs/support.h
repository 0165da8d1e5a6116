// What of libibverbs' interface the software RNIC offers, and how it refuses the rest. docs/verbs-support.md is made
// from it, and tests/abi/support_test.cc does what each row says.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <infiniband/verbs.h>

namespace verbena::verbs {

struct SupportRow {
  std::string_view name;
  int error = 0;  // 0: offered; else the errno that it is refused with
  std::string_view words;
};

struct SupportSection {
  std::string_view title;
  std::size_t count = 0;
};

// What of a modify_qp mask does not count: a program may give both ends of an XRC connection the attributes of either,
// as the kernel lets it.
constexpr std::uint32_t ignored_attributes(ibv_qp_type type) noexcept {
  if (type == IBV_QPT_XRC_SEND) return std::uint32_t{0} | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (type == IBV_QPT_XRC_RECV) {
    return std::uint32_t{0} | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  }
  return 0;
}

// By `type` of ibv_create_qp() and ibv_create_qp_ex().
inline constexpr std::array<SupportRow, 7> kQpTypeRows{{
    {"IBV_QPT_RC", 0, "Made in a protection domain"},
    {"IBV_QPT_UC", 0, "Made in a protection domain"},
    {"IBV_QPT_UD", 0, "Made in a protection domain"},
    {"IBV_QPT_XRC_SEND", 0,
     "Made in a protection domain. Receives nothing: `recv_cq`, `srq` and the receive capabilities are not looked at"},
    {"IBV_QPT_XRC_RECV", 0,
     "Made in an XRC domain (`ibv_create_qp_ex` with IBV_QP_INIT_ATTR_XRCD); in a protection domain EINVAL. Posts "
     "nothing"},
    {"IBV_QPT_RAW_PACKET", EOPNOTSUPP, "EPERM without CAP_NET_RAW"},
    {"IBV_QPT_DRIVER", EOPNOTSUPP, ""},
}};

struct AttributeRow {
  std::string_view name;
  std::uint32_t bit = 0;
  bool takes_value = true;  // else every value is EINVAL, also where the step allows the attribute
  std::string_view words;
};

// By bit of enum ibv_qp_attr_mask.
inline constexpr std::array<AttributeRow, 22> kAttributeRows{{
    {"IBV_QP_STATE", IBV_QP_STATE, true, "In every step"},
    {"IBV_QP_CUR_STATE", IBV_QP_CUR_STATE, true, "EINVAL where it is another"},
    {"IBV_QP_EN_SQD_ASYNC_NOTIFY", IBV_QP_EN_SQD_ASYNC_NOTIFY, true, ""},
    {"IBV_QP_ACCESS_FLAGS", IBV_QP_ACCESS_FLAGS, true, "EINVAL for a bit that verbs does not define"},
    {"IBV_QP_PKEY_INDEX", IBV_QP_PKEY_INDEX, true, "0; on InfiniBand one that holds a P_Key"},
    {"IBV_QP_PORT", IBV_QP_PORT, true, "1 to the number of ports"},
    {"IBV_QP_QKEY", IBV_QP_QKEY, true, "EPERM for one of 0x80000000 and above without CAP_NET_RAW"},
    {"IBV_QP_AV", IBV_QP_AV, true, "With a GRH; on InfiniBand by LID, with or without"},
    {"IBV_QP_PATH_MTU", IBV_QP_PATH_MTU, true, "EINVAL above the port's"},
    {"IBV_QP_TIMEOUT", IBV_QP_TIMEOUT, true, "0 to 31"},
    {"IBV_QP_RETRY_CNT", IBV_QP_RETRY_CNT, true, "0 to 7"},
    {"IBV_QP_RNR_RETRY", IBV_QP_RNR_RETRY, true, "0 to 7; 7 is without end"},
    {"IBV_QP_RQ_PSN", IBV_QP_RQ_PSN, true, "The lower 24 bits"},
    {"IBV_QP_MAX_QP_RD_ATOMIC", IBV_QP_MAX_QP_RD_ATOMIC, true, "0 to 128"},
    {"IBV_QP_ALT_PATH", IBV_QP_ALT_PATH, false, "EINVAL: RoCE has no alternate path"},
    {"IBV_QP_MIN_RNR_TIMER", IBV_QP_MIN_RNR_TIMER, true, "0 to 31"},
    {"IBV_QP_SQ_PSN", IBV_QP_SQ_PSN, true, "The lower 24 bits"},
    {"IBV_QP_MAX_DEST_RD_ATOMIC", IBV_QP_MAX_DEST_RD_ATOMIC, true, "0 to 128"},
    {"IBV_QP_PATH_MIG_STATE", IBV_QP_PATH_MIG_STATE, true, "IBV_MIG_MIGRATED"},
    {"IBV_QP_CAP", IBV_QP_CAP, true, "No queue is resized: EINVAL in every step"},
    {"IBV_QP_DEST_QPN", IBV_QP_DEST_QPN, true, "24 bits"},
    {"IBV_QP_RATE_LIMIT", IBV_QP_RATE_LIMIT, true, "Of raw packet queue pairs only: EINVAL in every step"},
}};

inline constexpr std::array<SupportSection, 10> kVerbSections{{
    {"Devices and ports", 21},
    {"Domains", 9},
    {"Memory", 21},
    {"Completions", 31},
    {"Address handles and groups", 8},
    {"Shared receive queues", 8},
    {"Queue pairs", 13},
    {"Extended sends", 21},
    {"Work queues, flow steering, counters", 15},
    {"Names and numbers", 9},
}};

// Every call of <infiniband/verbs.h>, section by section.
inline constexpr std::array<SupportRow, 156> kVerbRows{{
    // Devices and ports
    {"ibv_get_device_list", 0, "Real devices, where the host has some, and the software RNIC's in one list"},
    {"ibv_free_device_list", 0, ""},
    {"ibv_get_device_name", 0, ""},
    {"ibv_get_device_guid", 0,
     "Made from the MAC address of the interface; of an InfiniBand port as declared, else with its LID in the middle"},
    {"ibv_get_device_index", 0, "-1: the kernel has no index for it"},
    {"ibv_open_device", 0, ""},
    {"ibv_close_device", 0, "In a child of `fork` ENODEV, in errno too"},
    {"ibv_import_device", 0, "Of the same process; the descriptor of another process is EOPNOTSUPP"},
    {"ibv_query_device", 0, ""},
    {"ibv_query_device_ex", 0, ""},
    {"ibv_query_rt_values_ex", 0, "`raw_clock`, in nanoseconds of the monotonic clock"},
    {"ibv_query_port", 0, ""},
    {"ibv_query_gid", 0, ""},
    {"ibv_query_gid_ex", 0, ""},
    {"ibv_query_gid_table", 0, ""},
    {"ibv_query_pkey", 0, "One entry; on InfiniBand 32, as the subnet has them"},
    {"ibv_get_pkey_index", 0, ""},
    {"ibv_get_async_event", 0, ""},
    {"ibv_ack_async_event", 0, ""},
    {"ibv_fork_init", 0, "A child of `fork` finds everything closed: its calls are ENODEV, returned and in errno"},
    {"ibv_is_fork_initialized", 0, ""},
    // Domains
    {"ibv_alloc_pd", 0, ""},
    {"ibv_dealloc_pd", 0, "EBUSY while something lives in it"},
    {"ibv_import_pd", 0, "Of the same process"},
    {"ibv_unimport_pd", 0, ""},
    {"ibv_alloc_td", 0, "Taken; changes nothing"},
    {"ibv_dealloc_td", 0, ""},
    {"ibv_alloc_parent_domain", 0, "Allocators of the program's own are EOPNOTSUPP"},
    {"ibv_open_xrcd", 0, "Shared within the process"},
    {"ibv_close_xrcd", 0, "EBUSY while something lives in it"},
    // Memory
    {"ibv_reg_mr", 0, ""},
    {"ibv_reg_mr_iova", 0, ""},
    {"ibv_reg_mr_iova2", 0, ""},
    {"ibv_reg_dmabuf_mr", EOPNOTSUPP, "NULL with errno, also for the descriptor -1 that programs ask with"},
    {"ibv_rereg_mr", 0, ""},
    {"ibv_dereg_mr", 0, "EBUSY while a window is bound to it"},
    {"ibv_import_mr", 0, "Of the same process"},
    {"ibv_unimport_mr", 0, ""},
    {"ibv_alloc_null_mr", 0, ""},
    {"ibv_advise_mr", 0, ""},
    {"ibv_alloc_dm", 0, ""},
    {"ibv_free_dm", 0, ""},
    {"ibv_reg_dm_mr", 0, ""},
    {"ibv_memcpy_to_dm", 0, ""},
    {"ibv_memcpy_from_dm", 0, ""},
    {"ibv_import_dm", 0, "Of the same process"},
    {"ibv_unimport_dm", 0, ""},
    {"ibv_alloc_mw", 0, ""},
    {"ibv_bind_mw", 0, "Type 1; type 2 is bound by a work request"},
    {"ibv_dealloc_mw", 0, ""},
    {"ibv_inc_rkey", 0, ""},
    // Completions
    {"ibv_create_comp_channel", 0, ""},
    {"ibv_destroy_comp_channel", 0, "EBUSY while a queue uses it"},
    {"ibv_create_cq", 0, ""},
    {"ibv_create_cq_ex", 0, "A field that is not offered is EOPNOTSUPP"},
    {"ibv_cq_ex_to_cq", 0, ""},
    {"ibv_resize_cq", 0, ""},
    {"ibv_modify_cq", 0, "Moderation"},
    {"ibv_destroy_cq", 0, "EBUSY while something uses it"},
    {"ibv_poll_cq", 0, ""},
    {"ibv_req_notify_cq", 0, ""},
    {"ibv_get_cq_event", 0, ""},
    {"ibv_ack_cq_events", 0, ""},
    {"ibv_start_poll", 0, ""},
    {"ibv_next_poll", 0, ""},
    {"ibv_end_poll", 0, ""},
    {"ibv_wc_read_opcode", 0, ""},
    {"ibv_wc_read_vendor_err", 0, "Where memory was at fault: in what way"},
    {"ibv_wc_read_byte_len", 0, ""},
    {"ibv_wc_read_imm_data", 0, ""},
    {"ibv_wc_read_invalidated_rkey", 0, ""},
    {"ibv_wc_read_qp_num", 0, ""},
    {"ibv_wc_read_src_qp", 0, ""},
    {"ibv_wc_read_wc_flags", 0, ""},
    {"ibv_wc_read_slid", 0, ""},
    {"ibv_wc_read_sl", 0, ""},
    {"ibv_wc_read_dlid_path_bits", 0, ""},
    {"ibv_wc_read_completion_ts", 0, ""},
    {"ibv_wc_read_completion_wallclock_ns", 0, ""},
    {"ibv_wc_read_cvlan", EOPNOTSUPP, "At `ibv_create_cq_ex`, which is asked for the field"},
    {"ibv_wc_read_flow_tag", EOPNOTSUPP, "At `ibv_create_cq_ex`, which is asked for the field"},
    {"ibv_wc_read_tm_info", EOPNOTSUPP, "At `ibv_create_cq_ex`, which is asked for the field"},
    // Address handles and groups
    {"ibv_create_ah", 0, ""},
    {"ibv_create_ah_from_wc", 0, ""},
    {"ibv_init_ah_from_wc", 0, ""},
    {"ibv_destroy_ah", 0, ""},
    {"ibv_resolve_eth_l2_from_gid", 0, ""},
    {"ibv_flow_label_to_udp_sport", 0, ""},
    {"ibv_attach_mcast", 0, ""},
    {"ibv_detach_mcast", 0, ""},
    // Shared receive queues
    {"ibv_create_srq", 0, ""},
    {"ibv_create_srq_ex", 0, "Basic and XRC; tag matching is EOPNOTSUPP"},
    {"ibv_modify_srq", 0, ""},
    {"ibv_query_srq", 0, ""},
    {"ibv_destroy_srq", 0, "EBUSY while a queue pair uses it"},
    {"ibv_get_srq_num", 0, "Of XRC; of others EINVAL"},
    {"ibv_post_srq_recv", 0, ""},
    {"ibv_post_srq_ops", EOPNOTSUPP, "Tag matching"},
    // Queue pairs
    {"ibv_create_qp", 0, ""},
    {"ibv_create_qp_ex", 0,
     "A bit of `comp_mask` other than PD, XRCD, CREATE_FLAGS (0) and SEND_OPS_FLAGS is EOPNOTSUPP"},
    {"ibv_open_qp", 0,
     "An XRC receive queue pair of the same process; EINVAL where the domain has none of that number"},
    {"ibv_qp_to_qp_ex", 0, "NULL for one that was made without SEND_OPS_FLAGS"},
    {"ibv_modify_qp", 0, ""},
    {"ibv_query_qp", 0, ""},
    {"ibv_destroy_qp", 0, "EBUSY while attached to a group"},
    {"ibv_post_send", 0, ""},
    {"ibv_post_recv", 0, ""},
    {"ibv_query_qp_data_in_order", 0, "0: no order is promised"},
    {"ibv_modify_qp_rate_limit", EOPNOTSUPP, "Rates are set by `static_rate` of the path"},
    {"ibv_query_ece", EOPNOTSUPP, ""},
    {"ibv_set_ece", EOPNOTSUPP, ""},
    // Extended sends
    {"ibv_wr_start", 0, ""},
    {"ibv_wr_complete", 0, ""},
    {"ibv_wr_abort", 0, ""},
    {"ibv_wr_send", 0, ""},
    {"ibv_wr_send_imm", 0, ""},
    {"ibv_wr_send_inv", 0, "RC and XRC"},
    {"ibv_wr_rdma_write", 0, "RC, UC and XRC"},
    {"ibv_wr_rdma_write_imm", 0, "RC, UC and XRC"},
    {"ibv_wr_rdma_read", 0, "RC and XRC"},
    {"ibv_wr_atomic_cmp_swp", 0, "RC and XRC"},
    {"ibv_wr_atomic_fetch_add", 0, "RC and XRC"},
    {"ibv_wr_atomic_write", 0, "RC and XRC"},
    {"ibv_wr_bind_mw", 0, "RC and XRC"},
    {"ibv_wr_local_inv", 0, "RC and XRC"},
    {"ibv_wr_set_sge", 0, ""},
    {"ibv_wr_set_sge_list", 0, ""},
    {"ibv_wr_set_inline_data", 0, ""},
    {"ibv_wr_set_inline_data_list", 0, ""},
    {"ibv_wr_set_ud_addr", 0, "UD"},
    {"ibv_wr_set_xrc_srqn", 0, "XRC"},
    {"ibv_wr_send_tso", EOPNOTSUPP, "At `ibv_create_qp_ex`, which is asked for the operation"},
    // Work queues, flow steering, counters
    {"ibv_create_wq", EOPNOTSUPP, ""},
    {"ibv_modify_wq", EOPNOTSUPP, ""},
    {"ibv_destroy_wq", EOPNOTSUPP, ""},
    {"ibv_post_wq_recv", EOPNOTSUPP, "At `ibv_create_wq`: there is no such queue to post to"},
    {"ibv_create_rwq_ind_table", EOPNOTSUPP, ""},
    {"ibv_destroy_rwq_ind_table", EOPNOTSUPP, ""},
    {"ibv_create_flow", EOPNOTSUPP, ""},
    {"ibv_destroy_flow", EOPNOTSUPP, ""},
    {"ibv_create_flow_action_esp", EOPNOTSUPP, ""},
    {"ibv_modify_flow_action_esp", EOPNOTSUPP, ""},
    {"ibv_destroy_flow_action", EOPNOTSUPP, ""},
    {"ibv_create_counters", EOPNOTSUPP, ""},
    {"ibv_destroy_counters", EOPNOTSUPP, ""},
    {"ibv_attach_counters_point_flow", EOPNOTSUPP, ""},
    {"ibv_read_counters", EOPNOTSUPP, ""},
    // Names and numbers
    {"ibv_node_type_str", 0, ""},
    {"ibv_port_state_str", 0, ""},
    {"ibv_event_type_str", 0, ""},
    {"ibv_wc_status_str", 0, ""},
    {"ibv_rate_to_mult", 0, ""},
    {"ibv_rate_to_mbps", 0, ""},
    {"mult_to_ibv_rate", 0, ""},
    {"mbps_to_ibv_rate", 0, ""},
    {"ibv_is_qpt_supported", 0, ""},
}};

}  // namespace verbena::verbs
