// What the two ends of a connection agreed on, as modify() was told: the path to the other end and how patient to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/envelope.h"
#include "base/instant.h"
#include "base/qpn.h"
#include "engine/memory_region.h"
#include "engine/rate.h"
#include "engine/transmit.h"
#include "wire/bth.h"
#include "wire/opcode.h"

namespace verbena::engine {

struct Connection {
  Envelope envelope;
  Envelope cnp_envelope;  // of what tells the other end of congestion
  Qpn destination;
  Pkey pkey = wire::kDefaultPkey;
  wire::Transport transport = wire::Transport::kRc;
  bool reliable = true;  // RC and XRC; UC is not
  std::uint32_t mtu = 256;
  std::uint32_t window = 128;                // packets that may be on their way without an answer; at least 2
  BytePeriod byte_period = 0;                // the static rate of the path; 0: not paced
  bool congestion_control = true;            // where the network can mark packets
  bool repeats_selectively = true;           // where the other end does, too (selective_mark.h); only if reliable
  std::uint64_t line_rate = 10'000'000'000;  // bits a second, of the port
  AccessFlags access = 0;                    // what the other end may do here
  Duration ack_timeout{0};                   // 0: for ever
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;  // kForever: without end
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  bool rnr_nak_lost = false;  // a quirk: where no receive waits the responder is silent

  static constexpr std::uint8_t kForever = 7;

  // Whether it sends ECN-capable, tells of marks, and heeds CNPs. Never on InfiniBand: the traffic class of a GRH is
  // the application's, and nobody on the way marks it.
  bool minds_congestion() const noexcept { return congestion_control && !envelope.is_infiniband(); }
};

// Whether what arrived with `envelope` took the connection's path, in the other direction. On InfiniBand by LID, and by
// GID where the path has a GRH (section 9.6.1.5). Of its own LID the path bits count: the rest is what the port has
// now.
bool is_from_peer(const Connection& connection, const Envelope& envelope) noexcept;

// What every packet of a connection says, once its payload stands behind the first part: its headers, its pad, and
// where it goes.
void complete_packet(const Connection& connection, Qpn own, std::span<const std::byte> headers, std::uint32_t payload,
                     Transmit& packet) noexcept;

}  // namespace verbena::engine
