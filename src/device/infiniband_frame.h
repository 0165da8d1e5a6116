// A packet of InfiniBand made ready to travel: LRH and GRH in front of it, and for the network the ICRC behind it. In
// shared memory all such packets have one envelope, kInfinibandEnvelope, which tells them from those of RoCE; what
// theirs is stands in their headers. Holds what the Outgoing it makes points to.
//
// Thread-safety: none; lives on the stack of one send.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "device/routes.h"
#include "engine/transmit.h"
#include "transport/datagram.h"
#include "wire/icrc.h"
#include "wire/infiniband_header.h"
#include "wire/network_header.h"

namespace verbena::device {

// An address that no packet of RoCE can have: of 100::/64, which leads nowhere (RFC 6666).
inline constexpr Envelope kInfinibandEnvelope{.source = {},
                                              .destination = {{0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'I', 'B'}}};

inline bool carries_infiniband(const Envelope& envelope) noexcept {
  return envelope.destination == kInfinibandEnvelope.destination;
}

// What stands in front of such a packet in a capture where it went through shared memory: from and to 127.0.0.1.
Envelope captured_envelope() noexcept;

class InfinibandFrame {
 public:
  // The envelope stays that of the packet, with its port's LID of now; `with_icrc` also makes the header for captures.
  // Requires: `plain` has no ICRC and at most Transmit::kMaxParts - 1 parts; it outlives this.
  const transport::Outgoing& seal(const transport::Outgoing& plain, const Routes& routes, bool with_icrc) noexcept;
  // For `carrier`, what seal() made, here or elsewhere.
  const transport::Outgoing& address(const transport::Outgoing& sealed, const Envelope& carrier) noexcept;

 private:
  Envelope envelope_;
  std::optional<wire::InfinibandHeader> header_;
  std::optional<wire::NetworkHeader> network_header_;
  std::array<std::byte, wire::kIcrcSize> icrc_;
  std::array<transport::ConstBytes, engine::Transmit::kMaxParts + 1> parts_;
  transport::Outgoing sealed_;
};

}  // namespace verbena::device
