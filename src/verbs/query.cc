// What a program asks of a device and its port: limits, state, GIDs, P_Keys.
#include "verbs/query.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <endian.h>

#include "device/clock.h"
#include "device/interface_speed.h"
#include "device/rcu.h"
#include "verbs/address.h"
#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/port_rate.h"
#include "verbs/real.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV11 = "IBVERBS_1.1";
constinit Real<int(ibv_context*, ibv_device_attr*)> real_query_device{"ibv_query_device", kV11};
constinit Real<int(ibv_context*, std::uint8_t, _compat_ibv_port_attr*)> real_query_port{"ibv_query_port", kV11};
constinit Real<int(ibv_context*, std::uint8_t, int, ibv_gid*)> real_query_gid{"ibv_query_gid", kV11};
constinit Real<int(ibv_context*, std::uint8_t, int, __be16*)> real_query_pkey{"ibv_query_pkey", kV11};
constinit Real<int(ibv_context*, std::uint8_t, __be16)> real_get_pkey_index{"ibv_get_pkey_index", "IBVERBS_1.5"};
constinit Real<int(ibv_context*, std::uint32_t, std::uint32_t, ibv_gid_entry*, std::uint32_t, std::size_t)>
    real_query_gid_ex{"_ibv_query_gid_ex", "IBVERBS_1.11"};
constinit Real<ssize_t(ibv_context*, ibv_gid_entry*, std::size_t, std::uint32_t, std::size_t)> real_query_gid_table{
    "_ibv_query_gid_table", "IBVERBS_1.11"};
constinit Real<int(ibv_context*, std::uint8_t, unsigned, SysfsGidType*)> real_query_gid_type{"ibv_query_gid_type",
                                                                                             "IBVERBS_PRIVATE_34"};

constexpr std::size_t kCompatPortSize = offsetof(ibv_port_attr, port_cap_flags2);
constexpr std::uint32_t kPortCapabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
constexpr std::uint8_t kLinkUp = 5;
constexpr std::uint8_t kDisabled = 3;
constexpr std::uint32_t kNoVendor = 0xffffff;
constexpr std::uint8_t kSubnetTimeout = 18;  // as subnet managers set it: 4.096 us * 2^18

int as_int(std::uint32_t value) noexcept {
  return static_cast<int>(std::min<std::uint32_t>(value, INT32_MAX));
}

ibv_mtu mtu_code(std::uint32_t bytes) noexcept {
  return bytes >= 4096   ? IBV_MTU_4096
         : bytes >= 2048 ? IBV_MTU_2048
         : bytes >= 1024 ? IBV_MTU_1024
         : bytes >= 512  ? IBV_MTU_512
                         : IBV_MTU_256;
}

void fill_limits(const engine::Limits& limits, ibv_device_attr& attributes) noexcept {
  attributes.max_mr_size = limits.max_mr_size;
  attributes.max_qp = as_int(limits.max_qp);
  attributes.max_qp_wr = as_int(limits.max_qp_wr);
  attributes.max_sge = as_int(limits.max_sge);
  attributes.max_sge_rd = as_int(limits.max_sge);
  attributes.max_cq = as_int(limits.max_cq);
  attributes.max_cqe = as_int(limits.max_cqe);
  attributes.max_mr = as_int(limits.max_mr);
  attributes.max_mw = as_int(limits.max_mw);
  attributes.max_pd = as_int(limits.max_pd);
  attributes.max_qp_rd_atom = as_int(limits.max_rd_atomic);
  attributes.max_qp_init_rd_atom = as_int(limits.max_rd_atomic);
  attributes.max_mcast_grp = as_int(limits.max_multicast_groups);
  attributes.max_mcast_qp_attach = as_int(limits.max_queue_pairs_per_group);
  attributes.max_total_mcast_qp_attach = as_int(limits.max_multicast_attachments);
  attributes.max_ah = as_int(limits.max_ah);
  attributes.max_srq = as_int(limits.max_srq);
  attributes.max_srq_wr = as_int(limits.max_srq_wr);
  attributes.max_srq_sge = as_int(limits.max_srq_sge);
  attributes.local_ca_ack_delay = limits.local_ca_ack_delay;
}

std::size_t pkey_table_length(const device::Port& port) noexcept {
  return port.is_infiniband() ? device::InfinibandPort::kPkeyTableLength : engine::kPkeyTableLength;
}

// Of the port that has the longest.
std::size_t pkey_table_length(const device::Context& machine) noexcept {
  std::size_t longest = 0;
  for (const device::Port* const port : machine.ports()) longest = std::max(longest, pkey_table_length(*port));
  return longest;
}

bool has_frames(const device::Context& machine) noexcept {
  const auto ports = machine.ports();
  return std::any_of(ports.begin(), ports.end(), [](const device::Port* port) { return !port->is_infiniband(); });
}

void fill_device(device::Context& machine, ibv_device_attr& attributes) noexcept {
  attributes = {};
  std::strncpy(attributes.fw_ver, VERBENA_VERSION, sizeof attributes.fw_ver - 1);
  attributes.node_guid = htobe64(machine.device().guid());
  attributes.sys_image_guid = attributes.node_guid;
  attributes.page_size_cap = 0xfffff000;
  attributes.vendor_id = kNoVendor;
  attributes.device_cap_flags = IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
                                IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                                IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                                IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC;
  if (has_frames(machine)) attributes.device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_pkeys = static_cast<std::uint16_t>(pkey_table_length(machine));
  attributes.phys_port_cnt = static_cast<std::uint8_t>(machine.ports().size());
  fill_limits(machine.limits(), attributes);
}

// Nothing is pinned, so every operation may find its memory on demand.
void fill_paging(ibv_device_attr_ex& attributes) noexcept {
  constexpr std::uint32_t kDatagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr std::uint32_t kUnreliable = kDatagram | IBV_ODP_SUPPORT_WRITE;
  constexpr std::uint32_t kReliable = kUnreliable | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  attributes.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  attributes.odp_caps.per_transport_caps = {
      .rc_odp_caps = kReliable, .uc_odp_caps = kUnreliable, .ud_odp_caps = kDatagram};
  attributes.xrc_odp_caps = kReliable;
}

// Completions are stamped by the monotonic clock, in nanoseconds; the frequency is told in kHz.
void fill_clock(ibv_device_attr_ex& attributes) noexcept {
  attributes.completion_timestamp_mask = UINT64_MAX;
  attributes.hca_core_clock = 1'000'000;
  attributes.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX};
}

// raw_packet_caps stays 0: no VLAN tag is stripped, no check sequence scattered, no checksum computed.
void fill_raw_packets(const device::Context& machine, ibv_device_attr_ex& attributes) noexcept {
  if (!has_frames(machine)) return;
  attributes.packet_pacing_caps = {.qp_rate_limit_min = engine::kLeastRateLimit,
                                   .qp_rate_limit_max = UINT32_MAX,
                                   .supported_qpts = 1U << IBV_QPT_RAW_PACKET};
}

// What a subnet manager and the link have made of an InfiniBand port.
void fill_infiniband(const device::InfinibandPort& port, ibv_port_attr& attributes) noexcept {
  attributes.link_layer = IBV_LINK_LAYER_INFINIBAND;
  attributes.port_cap_flags = kInfinibandCapabilities;
  attributes.lid = port.lid;
  attributes.lmc = port.lmc;
  attributes.sm_lid = port.sm_lid;
  attributes.sm_sl = port.sm_sl;
  attributes.subnet_timeout = kSubnetTimeout;
  attributes.pkey_tbl_len = device::InfinibandPort::kPkeyTableLength;
}

void fill_port(const device::Context& machine, const device::Port& followed, ibv_port_attr& attributes) {
  const PortRate rate = port_rate(device::interface_megabits(followed.interface_name()));
  const device::RcuReadSection section;
  const device::PortSnapshot& port = followed.snapshot();
  attributes = {};
  attributes.state = port.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes.phys_state = port.up ? kLinkUp : kDisabled;
  attributes.max_mtu = IBV_MTU_4096;
  attributes.active_mtu = mtu_code(port.mtu);
  attributes.gid_tbl_len = static_cast<int>(port.gids.length());
  attributes.port_cap_flags = kPortCapabilities;
  attributes.max_msg_sz = machine.limits().max_message;
  attributes.pkey_tbl_len = engine::kPkeyTableLength;
  attributes.max_vl_num = 1;
  attributes.active_width = rate.width;
  attributes.active_speed = rate.speed;
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
  if (port.infiniband) fill_infiniband(*port.infiniband, attributes);
}

// The port of this number; EINVAL where there is none.
int find_port(ibv_context* context, std::uint32_t number, device::Port*& port) noexcept {
  if (!alive(context)) return device::Context::refuse_child();
  port = ours(context).machine->find_port(number);
  return port != nullptr ? 0 : EINVAL;
}

// A GID of InfiniBand belongs to no network interface. Requires: an RCU read section.
ibv_gid_entry entry_at(const device::Port& port, std::size_t index) noexcept {
  const device::GidTable& table = port.snapshot().gids;
  const bool infiniband = table.type_at(index) == engine::GidType::kInfiniband;
  return {.gid = to_verbs(table.at(index)),
          .gid_index = static_cast<std::uint32_t>(index),
          .port_num = port.number(),
          .gid_type = infiniband ? std::uint32_t{IBV_GID_TYPE_IB} : std::uint32_t{IBV_GID_TYPE_ROCE_V2},
          .ndev_ifindex = infiniband ? 0 : port.snapshot().interface_index};
}

// A program built with another header may know a shorter or a longer entry.
void put_entry(const ibv_gid_entry& entry, void* to, std::size_t size) noexcept {
  std::memset(to, 0, size);
  std::memcpy(to, &entry, std::min(size, sizeof entry));
}

// The GID at `index`; EINVAL outside of the table.
int gid_at(const device::Port& port, std::int64_t index, Gid& gid) noexcept {
  const device::RcuReadSection section;
  const device::GidTable& table = port.snapshot().gids;
  if (index < 0 || index >= static_cast<std::int64_t>(table.length())) return EINVAL;
  gid = table.at(static_cast<std::size_t>(index));
  return 0;
}

int minus_one(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

ssize_t fill_table(const device::Context& machine, void* entries, std::size_t room, std::size_t size) noexcept {
  const device::RcuReadSection section;
  std::size_t count = 0;
  for (const device::Port* const port : machine.ports()) {
    const device::GidTable& table = port->snapshot().gids;
    for (std::size_t index = 0; index < table.used_length(); ++index) {
      if (table.at(index).is_zero()) continue;
      if (count == room) return -EINVAL;
      put_entry(entry_at(*port, index), static_cast<std::byte*>(entries) + count * size, size);
      ++count;
    }
  }
  return static_cast<ssize_t>(count);
}

// Each index of the table; 0 where it is empty.
std::vector<std::uint16_t> pkey_table(const device::Port& port) {
  std::vector<std::uint16_t> pkeys{engine::kDefaultPkey};
  const device::RcuReadSection section;
  if (const auto& infiniband = port.snapshot().infiniband) pkeys = infiniband->pkeys;
  pkeys.resize(pkey_table_length(port));
  return pkeys;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* attributes, std::size_t size) noexcept {
  device::Port* port = nullptr;
  if (const int error = find_port(context, number, port)) return error;
  return contained([&] {
    ibv_port_attr full;
    fill_port(*ours(context).machine, *port, full);
    std::memset(attributes, 0, size);
    std::memcpy(attributes, &full, std::min(size, sizeof full));
    return 0;
  });
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t size) noexcept {
  if (!alive(context)) return device::Context::refuse_child();
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  ibv_device_attr_ex full{};
  fill_device(*ours(context).machine, full.orig_attr);
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
  full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
  fill_paging(full);
  fill_clock(full);
  fill_raw_packets(*ours(context).machine, full);
  full.max_dm_size = ours(context).machine->limits().max_dm_size;
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &full, std::min(size, sizeof full));
  return 0;
}

// As providers do: all ticks stand in tv_nsec.
int query_rt_values(ibv_context* context, ibv_values_ex* values) noexcept {
  if (!alive(context)) return device::Context::refuse_child();
  const std::uint32_t wanted = std::exchange(values->comp_mask, 0);
  if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) == 0) return EINVAL;
  values->raw_clock = {.tv_sec = 0, .tv_nsec = device::now().ns};
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

std::optional<std::uint8_t> find_gid_index(ibv_context* context, std::uint8_t number, const Gid& gid) noexcept {
  device::Port* port = nullptr;
  if (find_port(context, number, port) != 0) return std::nullopt;
  const device::RcuReadSection section;
  const auto index = port->snapshot().gids.index_of(gid);
  return index ? std::optional(static_cast<std::uint8_t>(*index)) : std::nullopt;
}

VERBENA_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  if (!is_ours(context)) return real_query_device.call_or(EOPNOTSUPP, context, attributes);
  if (!alive(context)) return device::Context::refuse_child();
  fill_device(*ours(context).machine, *attributes);
  return 0;
}

// Programs linked long ago call this with a struct that ends before port_cap_flags2.
VERBENA_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  if (!is_ours(context)) return real_query_port.call_or(EOPNOTSUPP, context, port, attributes);
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes), kCompatPortSize);
}

VERBENA_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t number, int index, ibv_gid* gid) {
  if (!is_ours(context)) return real_query_gid.call_or(-1, context, number, index, gid);
  device::Port* port = nullptr;
  Gid found;
  int error = find_port(context, number, port);
  if (error == 0) error = gid_at(*port, index, found);
  if (error == 0) *gid = to_verbs(found);
  return minus_one(error);
}

VERBENA_EXPORT int _ibv_query_gid_ex(ibv_context* context, std::uint32_t number, std::uint32_t index,
                                     ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (!is_ours(context)) return real_query_gid_ex.call_or(EOPNOTSUPP, context, number, index, entry, flags, size);
  if (flags != 0) return EINVAL;
  device::Port* port = nullptr;
  if (const int error = find_port(context, number, port)) return error;
  const device::RcuReadSection section;
  Gid found;
  if (const int error = gid_at(*port, index, found)) return error;
  if (found.is_zero()) return ENODATA;
  put_entry(entry_at(*port, index), entry, size);
  return 0;
}

VERBENA_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t room,
                                            std::uint32_t flags, std::size_t size) {
  if (!is_ours(context)) return real_query_gid_table.call_or(-EOPNOTSUPP, context, entries, room, flags, size);
  if (!alive(context)) return -device::Context::refuse_child();
  return flags != 0 ? -EINVAL : fill_table(*ours(context).machine, entries, room, size);
}

// The kernel has a type for a used index only; libibverbs takes an empty one for the oldest.
VERBENA_EXPORT int ibv_query_gid_type(ibv_context* context, std::uint8_t number, unsigned index, SysfsGidType* type) {
  if (!is_ours(context)) return real_query_gid_type.call_or(-1, context, number, index, type);
  device::Port* port = nullptr;
  Gid found;
  int error = find_port(context, number, port);
  if (error == 0) error = gid_at(*port, index, found);
  const bool roce = error == 0 && !found.is_zero() && !port->is_infiniband();
  if (error == 0) *type = roce ? SysfsGidType::kRoceV2 : SysfsGidType::kIbOrRoceV1;
  return minus_one(error);
}

VERBENA_EXPORT int ibv_query_pkey(ibv_context* context, std::uint8_t number, int index, __be16* pkey) {
  if (!is_ours(context)) return real_query_pkey.call_or(-1, context, number, index, pkey);
  return minus_one(contained([=] {
    device::Port* port = nullptr;
    if (const int error = find_port(context, number, port)) return error;
    const std::vector<std::uint16_t> pkeys = pkey_table(*port);
    if (index < 0 || static_cast<std::size_t>(index) >= pkeys.size()) return EINVAL;
    *pkey = htobe16(pkeys[static_cast<std::size_t>(index)]);
    return 0;
  }));
}

VERBENA_EXPORT int ibv_get_pkey_index(ibv_context* context, std::uint8_t number, __be16 pkey) {
  if (!is_ours(context)) return real_get_pkey_index.call_or(-1, context, number, pkey);
  int index = 0;
  const int refused = contained([&] {
    device::Port* port = nullptr;
    if (const int error = find_port(context, number, port)) return error;
    const std::vector<std::uint16_t> pkeys = pkey_table(*port);
    const auto found = std::find(pkeys.begin(), pkeys.end(), be16toh(pkey));
    if (found == pkeys.end() || *found == 0) return EINVAL;
    index = static_cast<int>(found - pkeys.begin());
    return 0;
  });
  return refused == 0 ? index : minus_one(refused);
}

}  // namespace verbena::verbs
