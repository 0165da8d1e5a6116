// Spreads the arrivals of an address over the processes that share it, by the slot in the destination QPN.
#pragma once

#include <cstddef>
#include <string_view>

#include "transport/udp/udp_port.h"
#include "verbena/gid.h"

namespace verbena::transport {

// How many UDP sockets are bound to the address and port: the lines of /proc/net/udp or udp6 that name it.
std::size_t count_bound_sockets(std::string_view proc_net_udp, const Gid& address, unsigned port);

// Gives the group of sockets to which `socket` belongs a classic BPF program: socket number (slot mod size of the
// group) takes the datagram. The numbers change when a socket of the group closes, so this only keeps what is for one
// process together; the kernel spreads by hash what the program cannot place. Failure is harmless and not reported.
void steer_by_slot(int socket, const UdpOptions& options) noexcept;

}  // namespace verbena::transport
