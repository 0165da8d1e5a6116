// The numbers of enum rdma_cm_event_type, as programs read them. (rdma/rdma_cma.h, which has them by name, cannot stand
// beside the header of the kernel's interface: both define the same names.)
#pragma once

#include <cstdint>

namespace verbena::ucm {

enum class EventKind : std::uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kMulticastJoined = 12,
  kTimeWaitExit = 15,
};

constexpr std::uint32_t number(EventKind kind) noexcept {
  return static_cast<std::uint32_t>(kind);
}

}  // namespace verbena::ucm
