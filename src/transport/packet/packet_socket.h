// A packet socket (packet(7)) on one Ethernet interface: whole frames, past the host's protocols.
#pragma once

#include "transport/fd.h"
#include "transport/fork_set.h"
#include "verbena/result.h"

namespace verbena::transport {

// Bound to the interface, and receiving nothing. kPermission (EPERM) without CAP_NET_RAW in the network namespace;
// kUnsupported where the frames of the interface have no Ethernet header; kNotFound where there is none of this index.
Result<Fd> open_packet_socket(unsigned interface_index, ForkSet& forks);

}  // namespace verbena::transport
