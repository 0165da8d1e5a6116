// Who has the UDP port of an address of a software device, where the device itself has not got it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rdma/device_kind.h"
#include "rdma/doctor_facts.h"
#include "verbena/gid.h"

namespace verbena::cli {

// In words: "process 12 (python3) of user 65534". Empty where process `self` has it, or where nobody is seen to.
std::string udp_port_holder(const std::vector<rdma::PortHolder>& holders, const Gid& address, std::uint32_t self);

// Of a device that this process has open: what the kernel's tables say now, for one address after the other.
class UdpPortHolders {
 public:
  // Nobody is in the way of a device of another kind, nor with VERBENA_UDP=off.
  static UdpPortHolders read(rdma::DeviceKind kind);

  // As udp_port_holder().
  std::string of(const Gid& address) const;

 private:
  std::vector<rdma::PortHolder> holders_;
};

// What to do about it, in one sentence.
inline constexpr const char* kUdpPortAdvice =
    "From there it reaches only processes of this user on this host. End what has the port (a kernel rxe: rdma link "
    "delete NAME), or run as its user; VERBENA_UDP=off stays on this host";

}  // namespace verbena::cli
