// From the address of a peer to the device and the GID that reach it: the kernel's routing table says from which
// address, and the GID tables of our devices whose that is.
//
// Thread-safety: any thread. Asks the kernel; does not wait for the network.
#pragma once

#include <optional>

#include "device/device.h"
#include "device/port.h"
#include "device/runtime.h"
#include "ucm/socket_address.h"
#include "verbena/result.h"

namespace verbena::ucm {

struct Station {
  const device::Device* device = nullptr;
  device::Port* port = nullptr;
  Gid gid;
};

// Whether a port of it is of Ethernet, and so has IP addresses to be found by.
bool has_ethernet(const device::Device& device) noexcept;

// Whose address it is. kNotFound with ENODEV where no device of Ethernet has it.
Result<Station> find_station(device::Runtime& runtime, const Gid& address);
// As above, with any device for a loopback address that none has.
Result<Station> find_station_or_any(device::Runtime& runtime, const Gid& address);

// So that requests to any address of this host arrive: opens the ports of all devices of Ethernet.
Status open_all_ports(device::Runtime& runtime);

// The address from which the kernel would send to `destination`; from `source` where that is given.
Result<SocketAddress> source_address(const SocketAddress& destination, const std::optional<SocketAddress>& source);

}  // namespace verbena::ucm
