#include "device/inbound.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/clock.h"
#include "device/infiniband_frame.h"
#include "device/queue_pair.h"
#include "wire/icrc.h"
#include "wire/infiniband_header.h"
#include "wire/network_header.h"

namespace verbena::device {
namespace {

bool was_sent_to(const Envelope& envelope, const Port& port, const Port* through) noexcept {
  const PortSnapshot& snapshot = port.snapshot();
  if (snapshot.infiniband) return snapshot.infiniband->has_lid(envelope.link.destination_lid);
  if (envelope.is_infiniband()) return false;
  return through == nullptr ? snapshot.gids.contains(envelope.destination) : through == &port;
}

bool was_sent_to_another_port(const Envelope& envelope, QueuePair& queue_pair, const Port* through) noexcept {
  const auto ports = queue_pair.context().ports();
  return std::any_of(ports.begin(), ports.end(), [&](const Port* port) {
    return port != &queue_pair.port() && was_sent_to(envelope, *port, through);
  });
}

}  // namespace

transport::Receipt Inbound::deliver(const transport::Incoming& datagram, Port* through) noexcept {
  Arrival arrival{.datagram = datagram,
                  .packet = {},
                  .envelope = datagram.envelope,
                  .udp_payload_size = datagram.bytes.size(),
                  .port = through};
  if (!datagram.has_icrc) arrival.udp_payload_size += wire::kIcrcSize;
  Drop drop = check(arrival, through);
  if (drop == Drop::kNone) {
    const Qpn destination = arrival.packet.bth.destination_qpn;
    if (destination.is_multicast()) {
      drop = deliver_group(arrival, through);
    } else if (arrival.envelope.destination.is_multicast()) {
      drop = Drop::kUnknownDestination;  // a group's address, but not the group's QPN
    } else if (destination == wire::kGeneralServicesQpn && through != nullptr && !arrival.envelope.is_infiniband()) {
      drop = management_.on_packet(arrival.packet, arrival.envelope, at());
    } else if (!exchange_.owns(destination.slot())) {
      return hand_over(arrival);
    } else if (deliver_unicast(arrival, through, drop) == transport::Receipt::kLater) {
      held_back_ = true;
      return transport::Receipt::kLater;
    }
  }
  if (tap_ != nullptr) record(arrival);
  if (drop != Drop::kNone) counters_of(arrival).count(drop);
  return transport::Receipt::kTaken;
}

DeviceCounters& Inbound::counters_of(const Arrival& arrival) noexcept {
  return arrival.port == nullptr ? host_counters_ : arrival.port->counters();
}

Drop Inbound::check(Arrival& arrival, const Port* through) const noexcept {
  const bool infiniband =
      through == nullptr ? carries_infiniband(arrival.datagram.envelope) : through->snapshot().infiniband.has_value();
  if (infiniband) return check_infiniband(arrival, through);
  const auto& [envelope, bytes, has_icrc] = arrival.datagram;
  const Drop drop = wire::decode_packet(bytes, has_icrc, arrival.packet);
  if (drop != Drop::kNone || !has_icrc) return drop;
  const wire::NetworkHeader header(envelope, bytes.size());
  const auto icrc = wire::is_ipv4(envelope) ? wire::verify_icrc_of_unknown_id(header.bytes(), bytes)
                                            : wire::verify_icrc(header.bytes(), bytes);
  return icrc.is_good() ? Drop::kNone : Drop::kIcrcMismatch;
}

// What came by UDP may have been written by anybody: its source LID must be that of the host it came from.
Drop Inbound::check_infiniband(Arrival& arrival, const Port* through) const noexcept {
  const auto& [carrier, bytes, has_icrc] = arrival.datagram;
  wire::InfinibandHeaderView header;
  if (const Drop drop = wire::decode_infiniband_header(bytes, has_icrc, header); drop != Drop::kNone) return drop;
  if (through != nullptr) {
    const Routes& routes = *routes_.load(std::memory_order_acquire);  // partner: the release store in Runtime
    if (!is_source_of_lid(routes, header.envelope.link.source_lid, carrier.source)) return Drop::kLidNotOfSource;
  }
  const auto rest = bytes.subspan(header.size);
  arrival.envelope = header.envelope;
  arrival.udp_payload_size -= header.size;
  const Drop drop = wire::decode_packet(rest, has_icrc, arrival.packet);
  if (drop != Drop::kNone || !has_icrc) return drop;
  return wire::verify_infiniband_icrc(bytes.first(header.size), rest) ? Drop::kNone : Drop::kIcrcMismatch;
}

// Whether a packet for a queue pair was sent to the port that it is on.
Drop Inbound::check_port(const Arrival& arrival, QueuePair& queue_pair, const Port* through) const noexcept {
  const Envelope& envelope = arrival.envelope;
  const auto& infiniband = queue_pair.port().snapshot().infiniband;
  if (!was_sent_to(envelope, queue_pair.port(), through)) [[unlikely]] {
    if (was_sent_to_another_port(envelope, queue_pair, through)) return Drop::kWrongPort;
    return infiniband ? Drop::kUnknownLid : Drop::kUnknownDestination;
  }
  if (!infiniband) return Drop::kNone;
  const bool gid_fits = !envelope.link.has_grh || infiniband->has_gid(envelope.destination);
  return gid_fits ? Drop::kNone : Drop::kGidNotOfLid;
}

QueuePair* Inbound::find(Arrival& arrival, const Port* through, Drop& drop) noexcept {
  auto* queue_pair = queue_pairs_.find(arrival.packet.bth.destination_qpn);
  if (queue_pair == nullptr) {
    drop = Drop::kUnknownQpn;
    return nullptr;
  }
  drop = check_port(arrival, *queue_pair, through);
  if (drop != Drop::kNone) return nullptr;
  Port& port = queue_pair->port();
  arrival.port = &port;
  LinkRoute& link = arrival.envelope.link;
  if (const auto& infiniband = port.snapshot().infiniband) link.path_bits = infiniband->path_bits(link.destination_lid);
  return queue_pair;
}

transport::Receipt Inbound::deliver_unicast(Arrival& arrival, const Port* through, Drop& drop) noexcept {
  auto* queue_pair = find(arrival, through, drop);
  if (queue_pair == nullptr) return transport::Receipt::kTaken;
  if (queue_pair->is_connected()) {
    drop = deliver_connected(arrival, *queue_pair);
    return transport::Receipt::kTaken;
  }
  drop = queue_pair->receive(arrival.packet, arrival.envelope, arrival.udp_payload_size);
  if (drop != Drop::kNoReceiveRequest) return transport::Receipt::kTaken;
  if (!queue_pair->would_rather_wait(now(), patient_)) return transport::Receipt::kTaken;
  drop = Drop::kNone;
  return transport::Receipt::kLater;
}

Drop Inbound::deliver_connected(const Arrival& arrival, QueuePair& queue_pair) noexcept {
  auto& link = queue_pair.to_follow_up();
  if (!std::exchange(link.listed, true)) link.next = std::exchange(to_follow_up_, &queue_pair);
  const PutOffEvents::Scope scope(put_off_);
  return queue_pair.receive_connected(arrival.packet, arrival.envelope, arrival.udp_payload_size, at());
}

void Inbound::follow_up() noexcept {
  while (QueuePair* const next = to_follow_up_) {
    auto& link = next->to_follow_up();
    to_follow_up_ = link.next;
    link = {};
    next->follow_up(at());
  }
  put_off_.flush();
}

// One look at the clock for a batch.
Instant Inbound::at() noexcept {
  if (at_ == Instant{}) at_ = now();
  return at_;
}

Drop Inbound::deliver_group(Arrival& arrival, const Port* through) noexcept {
  const auto* groups = groups_.load(std::memory_order_acquire);  // partner: the release store in Runtime
  Drop result = Drop::kNotAttached;
  const Gid& group = arrival.envelope.destination;
  for (const Qpn member : groups->members(group)) {
    auto* queue_pair = queue_pairs_.find(member);
    if (queue_pair == nullptr || (through != nullptr && through != &queue_pair->port())) continue;
    if (groups->lid_of(group, member) != arrival.envelope.link.destination_lid) continue;
    arrival.port = &queue_pair->port();
    const Drop drop = queue_pair->receive(arrival.packet, arrival.envelope, arrival.udp_payload_size);
    if (drop != Drop::kNone) arrival.port->counters().count(drop);
    result = Drop::kNone;
  }
  return result;
}

transport::Receipt Inbound::hand_over(const Arrival& arrival) noexcept {
  const std::array<transport::ConstBytes, 1> parts{arrival.datagram.bytes};
  const Slot slot = arrival.packet.bth.destination_qpn.slot();
  const bool infiniband = arrival.envelope.is_infiniband();
  const transport::Outgoing onward{.envelope = infiniband ? &kInfinibandEnvelope : &arrival.datagram.envelope,
                                   .parts = parts,
                                   .size = static_cast<std::uint32_t>(arrival.datagram.bytes.size()),
                                   .slot = slot,
                                   .has_icrc = arrival.datagram.has_icrc,
                                   .network_header = {}};
  // A datagram from another process' ring that is not for us was sent to a slot that changed hands: no second hop.
  if (slot == Slot{} || arrival.port == nullptr) {
    counters_of(arrival).count(Drop::kUnknownQpn);
    return transport::Receipt::kTaken;
  }
  const auto result = exchange_.send(slot, std::span(&onward, 1), now());
  if (result.reach == transport::Reach::kShared && result.sent.full) {
    held_back_ = true;  // the socket keeps it until the other process has room, or has stalled for too long
    return transport::Receipt::kLater;
  }
  switch (result.reach) {
    case transport::Reach::kShared:
      arrival.port->counters().add(Traffic::kHandedOver, 1);
      break;
    case transport::Reach::kAbsent:
      counters_of(arrival).count(Drop::kUnknownQpn);
      break;
    case transport::Reach::kForeign:
      counters_of(arrival).count(Drop::kHandOverFailed);
      break;
  }
  return transport::Receipt::kTaken;
}

void Inbound::record(const Arrival& arrival) noexcept {
  const Envelope& outer = arrival.datagram.envelope;
  const bool infiniband = arrival.envelope.is_infiniband();
  const wire::NetworkHeader header(carries_infiniband(outer) ? captured_envelope() : outer,
                                   arrival.datagram.bytes.size(),
                                   infiniband ? wire::kInfinibandUdpPort : wire::kRoceUdpPort);
  const std::array<transport::ConstBytes, 1> parts{arrival.datagram.bytes};
  tap_->write(transport::Direction::kIn, header.bytes(), parts, wall_clock_ns());
}

}  // namespace verbena::device
