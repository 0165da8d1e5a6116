// A datagram made ready for the wire: the source port it will really have, the IP and UDP headers, and the ICRC over
// all of it. Holds what the Outgoing it makes points to.
//
// Thread-safety: none; lives on the stack of one send.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "engine/transmit.h"
#include "transport/datagram.h"
#include "transport/udp/udp_port.h"
#include "wire/icrc.h"
#include "wire/network_header.h"

namespace verbena::device {

class WireFrame {
 public:
  // `udp_port` nullptr: the source port stays as the envelope has it.
  // Requires: `plain` has no ICRC and at most Transmit::kMaxParts - 1 parts; it outlives this.
  const transport::Outgoing& seal(const transport::Outgoing& plain, transport::UdpPort* udp_port) noexcept;

 private:
  Envelope envelope_;
  std::optional<wire::NetworkHeader> header_;
  std::array<std::byte, wire::kIcrcSize> icrc_;
  std::array<transport::ConstBytes, engine::Transmit::kMaxParts> parts_;
  transport::Outgoing sealed_;
};

}  // namespace verbena::device
