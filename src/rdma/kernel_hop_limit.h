// The hop limit of datagrams whose address handle the kernel makes: for its own software device (rxe) it asks the
// routing table when the handle is made, and leaves aside what the attributes ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <infiniband/verbs.h>

#include "rdma/device_kind.h"
#include "verbena/gid.h"
#include "verbena/gid_table.h"
#include "verbena/route.h"

namespace verbena::rdma {

// The route's own, else the standard of the interface and network namespace; nothing where neither can be read.
std::optional<std::uint8_t> kernel_hop_limit(const Gid& destination, const Route& route);

// Puts into `attributes` what a device of this kind sends with instead, and says so; an empty text where it sends what
// was asked for. `kernels`: as kernel_hop_limit() gives it.
std::string apply_kernel_hop_limit(DeviceKind kind, GidType type, std::optional<std::uint8_t> kernels,
                                   ibv_ah_attr& attributes);

}  // namespace verbena::rdma
