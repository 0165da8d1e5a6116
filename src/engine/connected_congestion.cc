// How a connected queue pair deals with congestion: marks become CNPs, and CNPs slow down both directions of what it
// sends (notification_point.h, reaction_point.h).
#include "engine/queue_pair.h"
#include "wire/packet.h"

namespace verbena::engine {

// A datagram queue pair only counts the mark: its packets go to many, and none of them has a pace.
void QueuePair::on_marked(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
  if (envelope.is_infiniband()) return;  // as Connection::minds_congestion()
  if (state() < QpState::kReadyToReceive || state() == QpState::kError) return;
  if (is_connected() && check_peer(packet, envelope) != Drop::kNone) return;
  observe(TransportEvent::kEcnMarked);
  if (is_connected() && connection_.minds_congestion()) notification_.on_marked(now);
}

// Before all answers, and first in a batch, so that on_responded() knows which packet it was.
bool QueuePair::make_cnp(Transmit& packet) noexcept {
  if (notification_.is_yielded() || (responder_ != nullptr && responder_->has_yielded())) return false;
  wire::Packet made;
  made.bth.opcode = wire::Opcode::kCnp;
  made.bth.becn = true;
  made.bth.pkey = connection_.pkey;
  made.bth.destination_qpn = connection_.destination;
  const std::size_t size = wire::encode_headers(made, 0, packet.header);
  packet.part_count = 1;
  complete_packet(connection_, qpn_, std::span(packet.header).first(size), 0, packet);
  packet.envelope = &connection_.cnp_envelope;
  notification_.on_yielded();
  return true;
}

void QueuePair::on_cnp_transmitted() noexcept {
  notification_.on_transmitted();
  observe(TransportEvent::kCnpSent);
}

// Requests and answers have each their own pace: a CNP does not say which of them met the congestion.
Drop QueuePair::on_cnp(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
  if (!is_connected()) return Drop::kOpcodeNotForQp;
  if (state() < QpState::kReadyToReceive || state() == QpState::kError) return Drop::kBadQpState;
  if (const Drop drop = check_peer(packet, envelope); drop != Drop::kNone) return drop;
  if (!connection_.minds_congestion()) return Drop::kNone;
  observe(TransportEvent::kCnpHandled);
  if (requester_ != nullptr) requester_->on_cnp(now);
  return Drop::kNone;
}

void QueuePair::slow_answers(Instant now) noexcept {
  if (connection_.minds_congestion() && responder_ != nullptr) responder_->on_cnp(now);
}

}  // namespace verbena::engine
