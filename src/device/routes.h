// Where a packet goes from here, as one immutable picture: which addresses are on this host, and through which UDP
// port a source address sends. A new picture is published whenever the network changes (read-copy-update).
//
// Thread-safety: immutable.
// Ownership:     points to UDP ports that outlive the grace period after a newer picture was published.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/envelope.h"
#include "device/lid_map.h"
#include "transport/udp/udp_port.h"
#include "verbena/gid.h"

namespace verbena::device {

struct LidRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

// How packets of an InfiniBand port of this process leave.
struct LidRoute {
  LidRange lids;                               // that it has now
  std::vector<transport::UdpPort*> udp_ports;  // that carry its packets
};

struct Routes {
  std::vector<Gid> local;                      // of every interface of the network namespace
  std::vector<transport::UdpPort*> udp_ports;  // of the ports in use here

  LidMap lids;                       // of other hosts
  std::vector<LidRoute> infiniband;  // by LinkRoute::port; empty ones for Ethernet

  bool is_local(const Gid& gid) const noexcept {
    return std::find(local.begin(), local.end(), gid) != local.end() || gid.is_loopback();
  }
  // nullptr where the address is not one of ours, its UDP port belongs to somebody else, or UDP is off.
  transport::UdpPort* udp_port_of(const Gid& source) const noexcept {
    const auto found =
        std::find_if(udp_ports.begin(), udp_ports.end(), [&](const auto* port) { return port->address() == source; });
    return found == udp_ports.end() ? nullptr : *found;
  }
};

// How a packet of InfiniBand leaves: the UDP port and the address that carry it.
struct Carrier {
  transport::UdpPort* udp_port = nullptr;  // nullptr: none is open here
  Gid destination;
};

// Whether the port with `lid` is on this host, as far as the map says.
bool is_lid_here(const Routes& routes, std::uint16_t lid) noexcept;
// Whether a packet of UDP with this source LID may come from `source`: the address that the map has for the LID, any
// of this host for a LID that is on it.
bool is_source_of_lid(const Routes& routes, std::uint16_t lid, const Gid& source) noexcept;
// The source LID of what `link` sends now.
std::uint16_t source_lid(const Routes& routes, const LinkRoute& link) noexcept;
// Requires: envelope.is_infiniband().
Carrier find_carrier(const Routes& routes, const Envelope& envelope) noexcept;
// The IP group that carries the packets of a multicast LID, in each family.
Gid carrier_group(std::uint16_t lid, bool ipv4) noexcept;
// The same in the other family. Requires: a group that carrier_group() made.
Gid twin_of_carrier_group(const Gid& group) noexcept;

}  // namespace verbena::device
