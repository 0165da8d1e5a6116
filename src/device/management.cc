#include "device/management.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "device/log.h"
#include "host/management_name.h"
#include "wire/connection_message.h"
#include "wire/source_port.h"

namespace verbena::device {
namespace {

constexpr std::uint16_t kInvalidServiceId = 8;
constexpr std::uint16_t kInvalidCommunicationId = 6;
constexpr std::uint8_t kServiceUnsupported = 1;

Management::Delivery send_to(int socket, const std::string& name,
                             std::span<const std::byte, host::kManagementMessageBytes> bytes) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof address.sun_path));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const auto sent = ::sendto(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length);
  if (sent >= 0) return Management::Delivery::kDone;
  return errno == EAGAIN || errno == ENOBUFS ? Management::Delivery::kFull : Management::Delivery::kNobody;
}

// Who sends what stands in another's place: the ends swapped.
host::ManagementMessage back_to(const host::ManagementMessage& message,
                                const wire::ConnectionMessage& answer) noexcept {
  return {.source = message.destination,
          .destination = message.source,
          .traffic_class = message.traffic_class,
          .datagram = wire::encode_connection_message(answer, wire::transaction_of(message.datagram))};
}

}  // namespace

Management::~Management() {
  if (socket_ >= 0) ::close(socket_);
}

Status Management::open() {
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return tl::make_unexpected(system_error("a socket for management datagrams"));
  return {};
}

void Management::abandon() noexcept {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

Drop Management::on_packet(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
  if (packet.bth.opcode != wire::Opcode::kUdSendOnly) return Drop::kOpcodeNotForQp;
  if (packet.deth.qkey != wire::kGeneralServicesQkey) return Drop::kQkeyMismatch;
  if (packet.payload.size() != wire::kMadSize) return Drop::kInvalidRequest;
  host::ManagementMessage message{
      .source = envelope.source, .destination = envelope.destination, .traffic_class = envelope.traffic_class};
  std::copy(packet.payload.begin(), packet.payload.end(), message.datagram.begin());
  switch (deliver(message)) {
    case Delivery::kDone:
      return Drop::kNone;
    case Delivery::kFull:
      return Drop::kNoReceiveRequest;
    case Delivery::kNotKnown:
      return Drop::kInvalidRequest;
    case Delivery::kNobody:
      break;
  }
  if (const auto answer = answer_of_nobody(message)) send(*answer, now);
  return Drop::kUnknownQpn;
}

Management::Delivery Management::deliver(const host::ManagementMessage& message) noexcept {
  const auto decoded = wire::decode_connection_message(message.datagram);
  if (!decoded) return Delivery::kNotKnown;
  const auto bytes = host::encode(message);
  try {
    const auto service = wire::service_of(*decoded);
    if (!service) {
      auto addressee = wire::addressee_of(*decoded);
      if (addressee == 0U) return Delivery::kNobody;
      return send_to(socket_, host::connection_process_name(host::process_of_connection(*addressee)), bytes);
    }
    const auto here = send_to(socket_, host::service_name(*service, message.destination), bytes);
    return here == Delivery::kNobody ? send_to(socket_, host::service_name(*service, {}), bytes) : here;
  } catch (const std::bad_alloc&) {
    return Delivery::kFull;
  }
}

Drop Management::send(const host::ManagementMessage& message, Instant now) noexcept {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kUdSendOnly;
  packet.bth.destination_qpn = wire::kGeneralServicesQpn;
  packet.bth.psn = Psn(psn_.fetch_add(1, std::memory_order_relaxed));
  packet.deth = {.qkey = wire::kGeneralServicesQkey, .source_qpn = wire::kGeneralServicesQpn};
  packet.payload = message.datagram;
  std::array<std::byte, wire::kMaxHeaderSize> headers;
  const std::size_t length = wire::encode_headers(packet, headers);
  const Envelope envelope{.source = message.source,
                          .destination = message.destination,
                          .source_port = wire::source_port_of_qpn(wire::kGeneralServicesQpn),
                          .traffic_class = message.traffic_class};
  const std::array<transport::ConstBytes, 2> parts{std::span(headers).first(length), packet.payload};
  const transport::Outgoing outgoing{.envelope = &envelope,
                                     .parts = parts,
                                     .size = static_cast<std::uint32_t>(length + packet.payload.size()),
                                     .slot = {},
                                     .has_icrc = false,
                                     .network_header = {}};
  return sender_.send(std::span(&outgoing, 1), now).taken == 1 ? Drop::kNone : Drop::kPeerStalled;
}

std::optional<host::ManagementMessage> Management::answer_of_nobody(const host::ManagementMessage& message) noexcept {
  const auto decoded = wire::decode_connection_message(message.datagram);
  if (!decoded) return std::nullopt;
  if (const auto* request = std::get_if<wire::ConnectRequest>(&*decoded)) {
    return back_to(message, wire::Rejection{.remote_id = request->local_id, .reason = kInvalidServiceId});
  }
  if (const auto* request = std::get_if<wire::ServiceRequest>(&*decoded)) {
    return back_to(message, wire::ServiceReply{.request_id = request->request_id,
                                               .status = kServiceUnsupported,
                                               .service_id = request->service_id});
  }
  if (const auto* reply = std::get_if<wire::ConnectReply>(&*decoded)) {
    return back_to(message, wire::Rejection{.local_id = reply->remote_id,
                                            .remote_id = reply->local_id,
                                            .message = wire::Answered::kReply,
                                            .reason = kInvalidCommunicationId});
  }
  if (const auto* request = std::get_if<wire::DisconnectRequest>(&*decoded)) {
    return back_to(message, wire::DisconnectReply{.local_id = request->remote_id, .remote_id = request->local_id});
  }
  return std::nullopt;
}

}  // namespace verbena::device
