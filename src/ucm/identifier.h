// An rdma_cm_id as the kernel's side has it: addresses, device, what was asked and answered.
//
// Thread-safety: under the lock of the service.
// Ownership:     keeps its channel alive; owns the port that it bound.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "cm/machine.h"
#include "ucm/channel.h"
#include "ucm/port_claim.h"
#include "ucm/socket_address.h"
#include "ucm/station.h"
#include "wire/ip_service.h"

namespace verbena::ucm {

enum class Stage : std::uint8_t {
  kIdle,
  kBound,
  kListening,
  kAddressResolved,
  kRouteResolved,
  kConnecting,  // asked, or not yet told that the answer arrived
  kRequested,   // a request came, nothing was answered
  kConnected,
  kEnded,
};

// What set_option changes.
struct Options {
  std::uint8_t type_of_service = 0;
  bool reuse_address = false;
  std::optional<bool> ipv6_only;
  std::optional<std::uint8_t> ack_timeout;
};

// What is known of a connection for its queue pair.
struct Agreement {
  Qpn remote_qpn{};
  Psn send_psn{};             // at which the other end wants our send queue to begin
  std::uint8_t path_mtu = 0;  // of the wire: 1 is 256 bytes
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  bool known = false;  // else nothing of the other end is
};

struct Identifier {
  std::uint32_t number = 0;
  std::uint64_t uid = 0;  // what the program calls it; 0 until it has accepted a request
  std::shared_ptr<Channel> channel;
  wire::PortSpace space = wire::PortSpace::kTcp;
  std::uint8_t qp_type = 0;
  Stage stage = Stage::kIdle;
  Options options;

  SocketAddress source = any_address(true);
  std::optional<SocketAddress> destination;
  std::optional<Station> station;
  Gid remote;  // the GID of the destination
  std::shared_ptr<PortClaim> claim;

  cm::ConnectionId connection = 0;
  Psn psn{};               // at which the send queue of the other end is to begin
  std::uint32_t qkey = 0;  // of datagrams
  Agreement agreement;

  std::uint32_t events_reported = 0;
  std::uint32_t backlog = 0;           // of a listener: how many requests may wait
  std::set<std::uint32_t> waiting;     // of a listener: those that wait
  std::uint32_t listener = 0;          // of a request: who listened
  std::set<std::uint32_t> multicasts;  // memberships

  bool datagrams() const noexcept;
  // What a REQ says of its queue pair: the transport, and the extended one.
  std::pair<std::uint8_t, std::uint8_t> transport() const noexcept;
  std::uint64_t service() const noexcept {
    return wire::service_id(space, destination ? destination->port : source.port);
  }
  cm::Path path() const noexcept { return {station->gid, remote, options.type_of_service}; }
};

}  // namespace verbena::ucm
