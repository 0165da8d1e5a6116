// Who has the UDP port of an address of a software device, where the device itself has not got it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rdma/device_kind.h"
#include "rdma/doctor_facts.h"
#include "verbena/device.h"
#include "verbena/gid.h"
#include "verbena/gid_table.h"

namespace verbena::cli {

// In words: "process 12 (python3) of user 65534". Empty where process `self` has it, or where nobody is seen to.
std::string udp_port_holder(const std::vector<rdma::PortHolder>& holders, const Gid& address, std::uint32_t self);

// An address whose UDP port the device has not got, and who has it.
struct HeldPort {
  Gid address{};
  std::string by{};
};

// The addresses that others hold and that may be to carry an InfiniBand port of `self`, whose GIDs do not tell which
// they are: those on the interfaces on which `self` has others, or all where it has none.
std::vector<HeldPort> held_carriers(const std::vector<rdma::PortHolder>& holders,
                                    const std::vector<rdma::InterfaceFacts>& interfaces, std::uint32_t self);

// Of a device that this process has open: what the kernel's tables say now.
class UdpPortHolders {
 public:
  // Nobody is in the way of a device of another kind, nor with VERBENA_UDP=off.
  static UdpPortHolders read(rdma::DeviceKind kind, LinkLayer link_layer);

  // The UDP port that is looked at.
  std::uint16_t port() const noexcept { return port_; }
  // Of the port with these GIDs.
  std::vector<HeldPort> of(const std::vector<GidEntry>& table, std::uint8_t port) const;
  // Who keeps this GID from reaching other hosts, as udp_port_holder().
  std::string of(const Gid& gid) const;

 private:
  LinkLayer link_layer_ = LinkLayer::kEthernet;
  std::uint16_t port_ = 0;
  std::vector<rdma::PortHolder> holders_;
  std::vector<HeldPort> carriers_;  // InfiniBand
};

// What to do about it, in one sentence.
inline constexpr const char* kUdpPortAdvice =
    "From there it reaches only processes of this user on this host. End what has the port (a kernel rxe: rdma link "
    "delete NAME), or run as its user; VERBENA_UDP=off stays on this host";

}  // namespace verbena::cli
