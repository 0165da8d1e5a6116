// Where a packet goes from here, as one immutable picture: which addresses are on this host, and through which UDP
// port a source address sends. A new picture is published whenever the network changes (read-copy-update).
//
// Thread-safety: immutable.
// Ownership:     points to UDP ports that outlive the grace period after a newer picture was published.
#pragma once

#include <algorithm>
#include <vector>

#include "transport/udp/udp_port.h"
#include "verbena/gid.h"

namespace verbena::device {

struct Routes {
  std::vector<Gid> local;                      // of every interface of the network namespace
  std::vector<transport::UdpPort*> udp_ports;  // of the ports in use here

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

}  // namespace verbena::device
