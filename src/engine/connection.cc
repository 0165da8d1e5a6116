#include "engine/connection.h"

#include "wire/packet.h"

namespace verbena::engine {

bool is_from_peer(const Connection& connection, const Envelope& envelope) noexcept {
  const Envelope& path = connection.envelope;
  if (envelope.source != path.destination || envelope.destination != path.source) return false;
  return envelope.link.source_lid == path.link.destination_lid && envelope.link.path_bits == path.link.path_bits &&
         envelope.link.has_grh == path.link.has_grh;
}

void complete_packet(const Connection& connection, Qpn own, std::span<const std::byte> headers, std::uint32_t payload,
                     Transmit& packet) noexcept {
  packet.parts[0] = headers;
  const auto pad = wire::pad_bytes(payload);
  if (!pad.empty()) packet.parts[packet.part_count++] = pad;
  packet.envelope = &connection.envelope;
  packet.source_qpn = own;
  packet.destination_qpn = connection.destination;
  packet.payload_size = payload;
  packet.size = static_cast<std::uint32_t>(headers.size() + payload + pad.size());
}

}  // namespace verbena::engine
