// From what the machine tells to what programs read from their channels.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "device/clock.h"
#include "device/log.h"
#include "ucm/address_handle_attributes.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

template <std::size_t Size>
void put_private_data(const std::array<std::byte, Size>& data, std::size_t from, std::uint8_t* to,
                      std::uint8_t& length) {
  const std::size_t size = std::min<std::size_t>(Size - from, 255);
  std::memcpy(to, data.data() + from, size);
  length = static_cast<std::uint8_t>(size);
}

// Each end's word for a number of reads is the other's opposite.
void put_request(const wire::ConnectRequest& request, rdma_ucm_conn_param& parameters) {
  put_private_data(request.private_data, wire::IpService::kSize, parameters.private_data, parameters.private_data_len);
  parameters.qp_num = request.local_qpn.value();
  parameters.responder_resources = request.initiator_depth;
  parameters.initiator_depth = request.responder_resources;
  parameters.flow_control = request.flow_control ? 1 : 0;
  parameters.retry_count = request.retry_count;
  parameters.rnr_retry_count = request.rnr_retry_count;
  parameters.srq = request.shared_receives ? 1 : 0;
}

void put_reply(const wire::ConnectReply& reply, rdma_ucm_conn_param& parameters) {
  put_private_data(reply.private_data, 0, parameters.private_data, parameters.private_data_len);
  parameters.qp_num = reply.local_qpn.value();
  parameters.responder_resources = reply.initiator_depth;
  parameters.initiator_depth = reply.responder_resources;
  parameters.flow_control = reply.flow_control ? 1 : 0;
  parameters.rnr_retry_count = reply.rnr_retry_count;
  parameters.srq = reply.shared_receives ? 1 : 0;
}

// The program's words about who asks, and whom.
template <class Request>
std::optional<wire::IpService> addresses_of(const Request& request) {
  return wire::IpService::decode(std::span(request.private_data).template first<wire::IpService::kSize>());
}

// A stranger may ask who listens for connections for datagrams, and the other way round. `stream`: nullptr of a request
// for datagrams.
bool is_of_its_kind(const Identifier& listener, const wire::ConnectRequest* stream) noexcept {
  if (stream == nullptr || listener.datagrams()) return stream == nullptr && listener.datagrams();
  return listener.transport() == std::pair(stream->transport, stream->extended_transport);
}

}  // namespace

void Service::on_event(const cm::Event& event) {
  if (event.kind == cm::EventKind::kRequested || event.kind == cm::EventKind::kServiceRequested) {
    on_request(event);
    return;
  }
  const auto known = by_connection_.find(event.id);
  Identifier* const identifier = known == by_connection_.end() ? nullptr : find(known->second);
  if (identifier == nullptr) return;
  const auto gone = [&] {
    by_connection_.erase(event.id);
    identifier->connection = 0;
    identifier->stage = Stage::kEnded;
  };
  switch (event.kind) {
    case cm::EventKind::kReplied:
      on_reply(*identifier, std::get<wire::ConnectReply>(event.message));
      return;
    case cm::EventKind::kEstablished:
      identifier->stage = Stage::kConnected;
      post(*identifier, EventKind::kEstablished);
      return;
    case cm::EventKind::kRejected:
      on_rejection(*identifier, event);
      gone();
      return;
    case cm::EventKind::kUnreachable:
      post(*identifier, EventKind::kUnreachable, -ETIMEDOUT);
      gone();
      return;
    case cm::EventKind::kDisconnected:
      post(*identifier, EventKind::kDisconnected, event.timed_out ? -ETIMEDOUT : 0);
      return;
    case cm::EventKind::kTimeWaitOver:
      post(*identifier, EventKind::kTimeWaitExit);
      gone();
      return;
    case cm::EventKind::kServiceReplied:
      on_service_reply(*identifier, std::get<wire::ServiceReply>(event.message));
      by_connection_.erase(event.id);
      identifier->connection = 0;
      return;
    case cm::EventKind::kRequested:
    case cm::EventKind::kServiceRequested:
      return;
  }
}

Identifier* Service::find_listener(std::uint64_t service, const SocketAddress& at) {
  Identifier* everywhere = nullptr;
  for (const auto& [number, identifier] : identifiers_) {
    if (identifier->stage != Stage::kListening ||
        wire::service_id(identifier->space, identifier->source.port) != service) {
      continue;
    }
    const bool here = identifier->source.gid == at.gid || (identifier->station && identifier->station->gid == at.gid);
    if (!identifier->source.is_any() && here) return identifier.get();
    // One at the IPv6 address of everything serves IPv4 too, unless it was told not to.
    const bool family_fits = identifier->source.ipv4 == at.ipv4 ||
                             (!identifier->source.ipv4 && !identifier->options.ipv6_only.value_or(false));
    if (identifier->source.is_any() && family_fits) everywhere = identifier.get();
  }
  return everywhere;
}

void Service::on_request(const cm::Event& event) {
  const auto* const stream = std::get_if<wire::ConnectRequest>(&event.message);
  const auto* const service = std::get_if<wire::ServiceRequest>(&event.message);
  const auto addresses = stream != nullptr ? addresses_of(*stream) : addresses_of(*service);
  const std::uint64_t wanted = stream != nullptr ? stream->service_id : service->service_id;
  const auto refuse = [&](cm::Reason reason) {
    machine_->reject(event.id, reason, {}, device::now());
    machine_->release(event.id, device::now());
  };
  const auto station = runtime_ ? find_station(*runtime_, event.path.local) : Result<Station>(Station{});
  if (!addresses || !station || station->device == nullptr) return refuse(cm::Reason::kInvalidServiceId);

  SocketAddress at{addresses->destination, wire::port_of_service(wanted), 0, addresses->destination.is_ipv4_mapped()};
  if (at.gid.is_loopback()) at.gid = event.path.local;
  if (at.gid != event.path.local) return refuse(cm::Reason::kInvalidServiceId);
  Identifier* const listener = find_listener(wanted, at);
  if (listener == nullptr || !is_of_its_kind(*listener, stream)) return refuse(cm::Reason::kInvalidServiceId);
  if (listener->waiting.size() >= listener->backlog) return refuse(cm::Reason::kNoResources);

  Identifier& made = make_identifier(listener->channel);
  made.space = listener->space;
  made.qp_type = listener->qp_type;
  made.qkey = listener->qkey;
  made.stage = Stage::kRequested;
  made.options = listener->options;
  made.source = at;
  made.destination = SocketAddress{addresses->source, addresses->source_port, 0, at.ipv4};
  made.station = *station;
  made.remote = event.path.remote;
  made.connection = event.id;
  made.listener = listener->number;
  listener->waiting.insert(made.number);
  by_connection_[event.id] = made.number;

  WaitingEvent waiting;
  waiting.child = made.number;
  waiting.response.id = made.number;
  waiting.response.event = number(EventKind::kConnectRequest);
  if (stream != nullptr) {
    made.agreement = {.remote_qpn = stream->local_qpn,
                      .send_psn = stream->starting_psn,
                      .path_mtu = stream->path_mtu,
                      .responder_resources = stream->initiator_depth,
                      .initiator_depth = stream->responder_resources,
                      .retry_count = stream->retry_count,
                      .rnr_retry_count = stream->rnr_retry_count,
                      .known = true};
    made.options.type_of_service = stream->traffic_class;
    put_request(*stream, waiting.response.param.conn);
    machine_->ask_for_time(event.id);
  } else {
    auto& parameters = waiting.response.param.ud;
    put_private_data(service->private_data, wire::IpService::kSize, parameters.private_data,
                     parameters.private_data_len);
  }
  post(*listener, waiting);
}

void Service::on_reply(Identifier& identifier, const wire::ConnectReply& reply) {
  auto& agreement = identifier.agreement;
  agreement.remote_qpn = reply.local_qpn;
  agreement.send_psn = reply.starting_psn;
  agreement.responder_resources = reply.initiator_depth;
  agreement.initiator_depth = reply.responder_resources;
  agreement.rnr_retry_count = reply.rnr_retry_count;
  agreement.known = true;
  WaitingEvent waiting;
  waiting.response.event = number(EventKind::kConnectResponse);
  put_reply(reply, waiting.response.param.conn);
  machine_->ask_for_time(identifier.connection);
  post(identifier, waiting);
}

void Service::on_service_reply(Identifier& identifier, const wire::ServiceReply& reply) {
  if (reply.status != static_cast<std::uint8_t>(cm::ServiceStatus::kValid)) {
    identifier.stage = Stage::kEnded;
    post(identifier, EventKind::kUnreachable, reply.status);
    return;
  }
  identifier.stage = Stage::kConnected;
  WaitingEvent waiting;
  waiting.response.event = number(EventKind::kEstablished);
  auto& parameters = waiting.response.param.ud;
  put_private_data(reply.private_data, 0, parameters.private_data, parameters.private_data_len);
  parameters.qp_num = reply.qpn.value();
  parameters.qkey = reply.qkey;
  identifier.qkey = reply.qkey;
  parameters.ah_attr =
      address_handle_attributes(*identifier.station, identifier.remote, identifier.options.type_of_service);
  post(identifier, waiting);
}

void Service::on_rejection(Identifier& identifier, const cm::Event& event) {
  const auto& rejection = std::get<wire::Rejection>(event.message);
  if (identifier.uid == 0) return;
  WaitingEvent waiting;
  waiting.response.event = number(EventKind::kRejected);
  waiting.response.status = rejection.reason;
  put_private_data(rejection.private_data, 0, waiting.response.param.conn.private_data,
                   waiting.response.param.conn.private_data_len);
  post(identifier, waiting);
}

}  // namespace verbena::ucm
