// The sockets of a UDP port, with the options that RoCEv2 needs on each.
#pragma once

#include "transport/fd.h"
#include "transport/udp/udp_port.h"
#include "verbena/result.h"

namespace verbena::transport {

// Receives and sends on the port of the address. kBusy in plain words where the port is taken.
Result<Fd> open_main_socket(const UdpOptions& options, ForkSet& forks);

// Sends only, from `port`; what arrives is dropped by a filter. kBusy where the port is taken.
Result<Fd> open_source_socket(const UdpOptions& options, std::uint16_t port, ForkSet& forks);

// Receives one multicast group on the interface of the address.
Result<Fd> open_group_socket(const UdpOptions& options, const Gid& group, ForkSet& forks);

}  // namespace verbena::transport
