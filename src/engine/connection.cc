#include "engine/connection.h"

#include "wire/packet.h"

namespace verbena::engine {

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
