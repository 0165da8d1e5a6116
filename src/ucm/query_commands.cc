// Commands that ask: addresses, the path, and the attributes of a queue pair for its next state.
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>

#include "base/byte_order.h"
#include "ucm/address_handle_attributes.h"
#include "ucm/command_bytes.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

constexpr std::uint32_t kNoIndex = 0xffffffff;  // the device is found by its GUID
constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint8_t kExactly = 2;
constexpr std::uint8_t kPacketLifeTime = 16;
constexpr std::uint8_t kRate = 3;  // IBV_RATE_10_GBPS, as sysfs has it where the interface says nothing
constexpr std::uint8_t kAckTimeout = 17;
constexpr std::uint16_t kFamilyOfInfiniband = 27;

std::uint64_t big_endian(std::uint64_t value) noexcept {
  std::uint64_t stored = 0;
  store_be64(reinterpret_cast<std::byte*>(&stored), value);
  return stored;
}

std::uint64_t node_guid(const Identifier& identifier) noexcept {
  return identifier.station ? big_endian(identifier.station->device->guid()) : 0;
}

bool has_route(const Identifier& identifier) noexcept {
  return identifier.station && identifier.destination &&
         (identifier.stage != Stage::kAddressResolved || identifier.agreement.known);
}

void copy_gid(const Gid& gid, std::uint8_t (&to)[16]) noexcept {
  std::memcpy(to, gid.bytes.data(), sizeof to);
}

ib_user_path_rec path_record(const Identifier& identifier) noexcept {
  ib_user_path_rec record{};
  copy_gid(identifier.remote, record.dgid);
  copy_gid(identifier.station->gid, record.sgid);
  record.pkey = htons(kPkey);
  if (!has_route(identifier)) return record;
  record.reversible = 1;
  record.mtu = path_mtu(*identifier.station);
  record.hop_limit = kHopLimit;
  record.traffic_class = identifier.options.type_of_service;
  record.numb_path = 1;
  record.mtu_selector = kExactly;
  record.rate_selector = kExactly;
  record.rate = kRate;
  record.packet_life_time_selector = kExactly;
  record.packet_life_time = kPacketLifeTime;
  return record;
}

// The record as it travels on the wire (InfiniBand Architecture volume 1, section 15.2.5.16), in 64 bytes.
std::array<std::byte, 64> wire_path_record(const Identifier& identifier) noexcept {
  const ib_user_path_rec record = path_record(identifier);
  std::array<std::byte, 64> wire{};
  std::byte* at = wire.data() + 8;  // behind the service id
  std::memcpy(at, record.dgid, 16);
  std::memcpy(at + 16, record.sgid, 16);
  store_be32(at + 36, record.hop_limit);
  store_be8(at + 40, record.traffic_class);
  store_be8(at + 41, 0x80 | 1);  // reversible; one path
  store_be16(at + 42, kPkey);
  store_be8(at + 46, static_cast<std::uint8_t>(kExactly << 6 | record.mtu));
  store_be8(at + 47, static_cast<std::uint8_t>(kExactly << 6 | kRate));
  store_be8(at + 48, static_cast<std::uint8_t>(kExactly << 6 | kPacketLifeTime));
  return wire;
}

template <class To>
void put_ip(const SocketAddress& address, To& to) noexcept {
  sockaddr_storage storage{};
  const std::size_t size = put_address(address, storage);
  std::memcpy(&to, &storage, std::min(size, sizeof to));
}

// struct sockaddr_ib: family 2, pkey 2, flow 4, GID 16, service 8, mask 8, scope 8.
std::size_t put_gid(const Gid& gid, std::uint64_t service, void* to) noexcept {
  std::array<std::byte, 48> bytes{};
  std::memcpy(bytes.data(), &kFamilyOfInfiniband, sizeof kFamilyOfInfiniband);
  store_be16(bytes.data() + 2, kPkey);
  std::memcpy(bytes.data() + 8, gid.bytes.data(), 16);
  store_be64(bytes.data() + 24, service);
  store_be64(bytes.data() + 32, ~std::uint64_t{0});
  std::memcpy(to, bytes.data(), bytes.size());
  return bytes.size();
}

rdma_ucm_query_addr_resp addresses(const Identifier& identifier, bool as_gids) noexcept {
  rdma_ucm_query_addr_resp answer{};
  answer.node_guid = node_guid(identifier);
  answer.port_num = identifier.station ? identifier.station->port->number() : std::uint8_t{0};
  answer.pkey = htons(kPkey);
  answer.ibdev_index = kNoIndex;
  const SocketAddress destination = identifier.destination.value_or(any_address(identifier.source.ipv4));
  if (as_gids) {
    const Gid local = identifier.station ? identifier.station->gid : Gid{};
    answer.src_size = static_cast<std::uint16_t>(
        put_gid(local, wire::service_id(identifier.space, identifier.source.port), &answer.src_addr));
    answer.dst_size = static_cast<std::uint16_t>(put_gid(identifier.remote, identifier.service(), &answer.dst_addr));
    return answer;
  }
  sockaddr_storage storage{};
  answer.src_size = static_cast<std::uint16_t>(put_address(identifier.source, storage));
  std::memcpy(&answer.src_addr, &storage, answer.src_size);
  answer.dst_size = static_cast<std::uint16_t>(put_address(destination, storage));
  std::memcpy(&answer.dst_addr, &storage, answer.dst_size);
  return answer;
}

void put_init(const Identifier& identifier, ib_uverbs_qp_attr& attributes) noexcept {
  attributes.qp_attr_mask = std::uint32_t{IBV_QP_STATE} | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  attributes.port_num = identifier.station->port->number();
  if (identifier.datagrams()) {
    attributes.qp_attr_mask |= IBV_QP_QKEY;
    attributes.qkey = identifier.qkey;
    return;
  }
  attributes.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
  if (!identifier.agreement.known) return;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (identifier.agreement.responder_resources > 0) {
    attributes.qp_access_flags |= std::uint32_t{IBV_ACCESS_REMOTE_READ} | IBV_ACCESS_REMOTE_ATOMIC;
  }
}

void put_rtr(const Identifier& identifier, ib_uverbs_qp_attr& attributes) noexcept {
  attributes.qp_attr_mask = IBV_QP_STATE;
  if (identifier.datagrams()) return;
  const Agreement& agreement = identifier.agreement;
  attributes.qp_attr_mask |= std::uint32_t{IBV_QP_AV} | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  attributes.ah_attr =
      address_handle_attributes(*identifier.station, identifier.remote, identifier.options.type_of_service);
  attributes.path_mtu = agreement.path_mtu;
  attributes.dest_qp_num = agreement.remote_qpn.value();
  attributes.rq_psn = identifier.psn.value();
  if (identifier.qp_type == IBV_QPT_RC || identifier.qp_type == IBV_QPT_XRC_RECV) {
    attributes.qp_attr_mask |= std::uint32_t{IBV_QP_MAX_DEST_RD_ATOMIC} | IBV_QP_MIN_RNR_TIMER;
    attributes.max_dest_rd_atomic = agreement.responder_resources;
  }
}

void put_rts(const Identifier& identifier, ib_uverbs_qp_attr& attributes) noexcept {
  attributes.qp_attr_mask = std::uint32_t{IBV_QP_STATE} | IBV_QP_SQ_PSN;
  attributes.sq_psn = identifier.agreement.send_psn.value();
  const Agreement& agreement = identifier.agreement;
  const bool sends = identifier.qp_type == IBV_QPT_RC || identifier.qp_type == IBV_QPT_XRC_SEND;
  if (sends) {
    attributes.qp_attr_mask |= std::uint32_t{IBV_QP_RETRY_CNT} | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    attributes.retry_cnt = agreement.retry_count;
    attributes.rnr_retry = agreement.rnr_retry_count;
    attributes.max_rd_atomic = agreement.initiator_depth;
  }
  if (sends || identifier.qp_type == IBV_QPT_XRC_RECV) {
    attributes.qp_attr_mask |= IBV_QP_TIMEOUT;
    attributes.timeout = identifier.options.ack_timeout.value_or(kAckTimeout);
  }
}

}  // namespace

Status Service::query_route(const Command& command) {
  const auto request = read_command<rdma_ucm_query>(command, offsetof(rdma_ucm_query, option));
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  const Identifier& identifier = **found;
  rdma_ucm_query_route_resp answer{};
  answer.node_guid = node_guid(identifier);
  answer.ibdev_index = kNoIndex;
  put_ip(identifier.source, answer.src_addr);
  put_ip(identifier.destination.value_or(any_address(identifier.source.ipv4)), answer.dst_addr);
  if (identifier.station) {
    answer.port_num = identifier.station->port->number();
    answer.ib_route[0] = path_record(identifier);
    answer.num_paths = has_route(identifier) ? 1 : 0;
  }
  return write_answer(command, request->response, answer, offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

Status Service::query(const Command& command) {
  const auto request = read_command<rdma_ucm_query>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  const Identifier& identifier = **found;
  constexpr std::size_t kLeast = offsetof(rdma_ucm_query_addr_resp, ibdev_index);
  switch (request->option) {
    case RDMA_USER_CM_QUERY_ADDR:
      return write_answer(command, request->response, addresses(identifier, false), kLeast);
    case RDMA_USER_CM_QUERY_GID:
      return write_answer(command, request->response, addresses(identifier, true), kLeast);
    case RDMA_USER_CM_QUERY_PATH:
      break;
    default:
      return failure(ErrorCode::kUnsupported, fmt::format("rdma_cm: query {} is not offered", request->option), ENOSYS);
  }
  std::array<std::byte, sizeof(rdma_ucm_query_path_resp) + sizeof(ib_path_rec_data)> bytes{};
  rdma_ucm_query_path_resp head;
  const bool known = has_route(identifier);
  head.num_paths = known ? 1 : 0;
  head.reserved = 0;
  std::memcpy(bytes.data(), &head, sizeof head);
  if (known) {
    ib_path_rec_data path{};
    path.flags = std::uint32_t{IB_PATH_GMP} | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
    const auto record = wire_path_record(identifier);
    std::memcpy(path.path_rec, record.data(), record.size());
    std::memcpy(bytes.data() + sizeof head, &path, sizeof path);
  }
  return write_answer(command, request->response, bytes.data(), bytes.size(), sizeof head);
}

Status Service::init_qp_attributes(const Command& command) {
  const auto request = read_command<rdma_ucm_init_qp_attr>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  const Identifier& identifier = **found;
  if (!identifier.station) return wrong_stage("init_qp_attr");
  ib_uverbs_qp_attr attributes{};
  attributes.qp_state = request->qp_state;
  const bool known = identifier.agreement.known || identifier.datagrams();
  if (request->qp_state == IBV_QPS_INIT) {
    put_init(identifier, attributes);
  } else if (request->qp_state == IBV_QPS_RTR && known) {
    put_rtr(identifier, attributes);
  } else if (request->qp_state == IBV_QPS_RTS && known) {
    put_rts(identifier, attributes);
  } else {
    return wrong_stage("init_qp_attr");
  }
  return write_answer(command, request->response, attributes);
}

}  // namespace verbena::ucm
