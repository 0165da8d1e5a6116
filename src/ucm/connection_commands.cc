// Commands of connecting, on either side.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include "device/clock.h"
#include "ucm/address_handle_attributes.h"
#include "ucm/command_bytes.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

constexpr std::uint32_t kMostBacklog = 1024;
constexpr std::uint8_t kMostRetries = 7;
constexpr std::uint8_t kAckTimeout = 17;  // half a second
constexpr std::uint8_t kAckDelay = 15;

template <std::size_t Size>
Status put_private_data(const rdma_ucm_conn_param& parameters, std::size_t from, std::array<std::byte, Size>& to) {
  if (parameters.private_data_len > Size - from) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("rdma_cm: {} bytes of private data, of which {} fit", parameters.private_data_len, Size - from),
        EINVAL);
  }
  std::memcpy(to.data() + from, parameters.private_data, parameters.private_data_len);
  return {};
}

void put_addresses(const Identifier& identifier, std::span<std::byte> private_data) noexcept {
  const wire::IpService service{.source_port = identifier.source.port,
                                .source = identifier.source.gid,
                                .destination = identifier.destination->gid};
  service.encode(private_data.first<wire::IpService::kSize>());
}

tl::unexpected<Error> no_room() {
  return failure(ErrorCode::kExhausted, "rdma_cm: too many connections in this process", ENOMEM);
}

}  // namespace

Status Service::listen(const Command& command) {
  const auto request = read_command<rdma_ucm_listen>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  Identifier& identifier = **found;
  if (identifier.stage == Stage::kIdle) {
    if (auto bound = bind_to(identifier, any_address(true)); !bound) return bound;
  }
  if (identifier.stage != Stage::kBound) return wrong_stage("listen");
  for (const auto& [number, other] : identifiers_) {
    if (other->stage == Stage::kListening && other->claim == identifier.claim) {
      return failure(ErrorCode::kBusy, fmt::format("rdma_cm: port {} is listened at already", identifier.source.port),
                     EADDRINUSE);
    }
  }
  const auto backlog = static_cast<std::int32_t>(request->backlog);
  identifier.backlog = backlog <= 0 ? kMostBacklog : std::min(request->backlog, kMostBacklog);
  identifier.stage = Stage::kListening;
  return {};
}

Status Service::connect(const Command& command) {
  const auto request = read_command<rdma_ucm_connect>(command, offsetof(rdma_ucm_connect, reserved));
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  if (request->conn_param.valid == 0 || (*identifier)->stage != Stage::kRouteResolved) return wrong_stage("connect");
  return (*identifier)->datagrams() ? ask_service(**identifier, request->conn_param)
                                    : connect_stream(**identifier, request->conn_param);
}

Status Service::connect_stream(Identifier& identifier, const rdma_ucm_conn_param& parameters) {
  wire::ConnectRequest request;
  if (auto put = put_private_data(parameters, wire::IpService::kSize, request.private_data); !put) return put;
  put_addresses(identifier, request.private_data);
  request.service_id = identifier.service();
  request.local_guid = identifier.station->device->guid();
  request.local_qpn = Qpn(parameters.qp_num);
  request.responder_resources = parameters.responder_resources;
  request.initiator_depth = parameters.initiator_depth;
  request.transport = identifier.transport().first;
  request.extended_transport = identifier.transport().second;
  request.flow_control = parameters.flow_control != 0;
  request.starting_psn = identifier.psn;
  request.retry_count = std::min(parameters.retry_count, kMostRetries);
  request.rnr_retry_count = std::min(parameters.rnr_retry_count, kMostRetries);
  request.path_mtu = path_mtu(*identifier.station);
  request.shared_receives = parameters.srq != 0;
  request.local_gid = identifier.station->gid;
  request.remote_gid = identifier.remote;
  request.traffic_class = identifier.options.type_of_service;
  request.hop_limit = kHopLimit;
  request.ack_timeout = identifier.options.ack_timeout.value_or(kAckTimeout);

  identifier.agreement.path_mtu = request.path_mtu;
  identifier.agreement.retry_count = request.retry_count;
  identifier.agreement.rnr_retry_count = request.rnr_retry_count;
  identifier.agreement.responder_resources = parameters.responder_resources;
  identifier.agreement.initiator_depth = parameters.initiator_depth;
  identifier.connection = machine_->connect(identifier.path(), request, device::now());
  if (identifier.connection == 0) return no_room();
  by_connection_[identifier.connection] = identifier.number;
  identifier.stage = Stage::kConnecting;
  return {};
}

Status Service::ask_service(Identifier& identifier, const rdma_ucm_conn_param& parameters) {
  wire::ServiceRequest request;
  if (auto put = put_private_data(parameters, wire::IpService::kSize, request.private_data); !put) return put;
  put_addresses(identifier, request.private_data);
  request.service_id = identifier.service();
  identifier.connection = machine_->ask(identifier.path(), request, device::now());
  if (identifier.connection == 0) return no_room();
  by_connection_[identifier.connection] = identifier.number;
  identifier.stage = Stage::kConnecting;
  return {};
}

Status Service::accept(const Command& command) {
  const auto request = read_command<rdma_ucm_accept>(command, offsetof(rdma_ucm_accept, reserved));
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  Identifier& identifier = **found;
  const bool given = request->conn_param.valid != 0;
  if (identifier.stage == Stage::kConnecting && !identifier.datagrams()) {
    if (!machine_->establish(identifier.connection, device::now())) return wrong_stage("accept");
    identifier.stage = Stage::kConnected;
    return {};
  }
  if (identifier.stage != Stage::kRequested) return wrong_stage("accept");
  const std::uint64_t before = identifier.uid;
  if (given) identifier.uid = request->uid;
  Status done;
  if (identifier.datagrams()) {
    done = answer_service(identifier, given ? &request->conn_param : nullptr);
  } else {
    done = given ? reply(identifier, request->conn_param) : Status(wrong_stage("accept without parameters"));
  }
  if (!done) identifier.uid = before;
  return done;
}

Status Service::reply(Identifier& identifier, const rdma_ucm_conn_param& parameters) {
  wire::ConnectReply reply;
  if (auto put = put_private_data(parameters, 0, reply.private_data); !put) return put;
  reply.local_qpn = Qpn(parameters.qp_num);
  reply.starting_psn = identifier.psn;
  reply.responder_resources = parameters.responder_resources;
  reply.initiator_depth = parameters.initiator_depth;
  reply.ack_delay = kAckDelay;
  reply.flow_control = parameters.flow_control != 0;
  reply.rnr_retry_count = std::min(parameters.rnr_retry_count, kMostRetries);
  reply.shared_receives = parameters.srq != 0;
  reply.local_guid = identifier.station->device->guid();
  identifier.agreement.responder_resources = parameters.responder_resources;
  identifier.agreement.initiator_depth = parameters.initiator_depth;
  if (!machine_->reply(identifier.connection, reply, device::now())) return wrong_stage("accept");
  identifier.stage = Stage::kConnecting;
  return {};
}

Status Service::answer_service(Identifier& identifier, const rdma_ucm_conn_param* parameters) {
  wire::ServiceReply reply;
  reply.service_id = wire::service_id(identifier.space, identifier.source.port);
  if (parameters != nullptr) {
    if (auto put = put_private_data(*parameters, 0, reply.private_data); !put) return put;
    reply.qpn = Qpn(parameters->qp_num);
    if (parameters->qkey != 0) identifier.qkey = parameters->qkey;
  }
  reply.qkey = identifier.qkey;
  if (!machine_->answer(identifier.connection, reply, device::now())) return wrong_stage("accept");
  // The machine answers again where it is asked again, and then forgets it without a word.
  by_connection_.erase(identifier.connection);
  identifier.connection = 0;
  identifier.stage = Stage::kConnected;
  return {};
}

Status Service::reject(const Command& command) {
  const auto request = read_command<rdma_ucm_reject>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto found = find(command, request->id);
  if (!found) return tl::make_unexpected(found.error());
  Identifier& identifier = **found;
  constexpr std::size_t kMost = sizeof(wire::Rejection::private_data);
  const std::size_t most = identifier.datagrams() ? sizeof(wire::ServiceReply::private_data) : kMost;
  if (request->private_data_len > most) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("rdma_cm: more than {} bytes of private data", most),
                   EINVAL);
  }
  const auto reason = request->reason == 0 ? cm::Reason::kConsumer : static_cast<cm::Reason>(request->reason);
  const auto private_data = std::as_bytes(std::span(request->private_data)).first(request->private_data_len);
  if (identifier.connection == 0 || !machine_->reject(identifier.connection, reason, private_data, device::now())) {
    return wrong_stage("reject");
  }
  if (!machine_->state_of(identifier.connection)) {
    by_connection_.erase(identifier.connection);
    identifier.connection = 0;
  }
  identifier.stage = Stage::kEnded;
  return {};
}

Status Service::disconnect(const Command& command) {
  const auto request = read_command<rdma_ucm_disconnect>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  // As the kernel has it: of what was ever asked for or requested, also where nothing is left to disconnect.
  const Stage stage = (*identifier)->stage;
  if (stage != Stage::kConnecting && stage != Stage::kRequested && stage != Stage::kConnected &&
      stage != Stage::kEnded) {
    return wrong_stage("disconnect");
  }
  if ((*identifier)->connection != 0) machine_->disconnect((*identifier)->connection, device::now());
  return {};
}

// The queue pair had a packet of the other end before the message that says it may.
Status Service::notify(const Command& command) {
  const auto request = read_command<rdma_ucm_notify>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  if (request->event != IBV_EVENT_COMM_EST) return {};
  if (!machine_->established((*identifier)->connection, device::now())) return wrong_stage("notify");
  return {};
}

}  // namespace verbena::ucm
