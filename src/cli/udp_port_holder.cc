#include "cli/udp_port_holder.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "rdma/doctor_process.h"

namespace verbena::cli {
namespace {

// A socket of "::" takes IPv4 too, unless it was told not to.
bool covers(const rdma::PortHolder& holder, const Gid& address) {
  if (holder.address == "::") return true;
  if (holder.address == "0.0.0.0") return address.is_ipv4_mapped();
  return parse_gid(holder.address) == address;
}

bool udp_is_off() {
  const char* value = std::getenv("VERBENA_UDP");
  return value != nullptr && (std::string_view(value) == "off" || std::string_view(value) == "0");
}

}  // namespace

std::string udp_port_holder(const std::vector<rdma::PortHolder>& holders, const Gid& address, std::uint32_t self) {
  const rdma::PortHolder* found = nullptr;
  for (const rdma::PortHolder& holder : holders) {
    if (!covers(holder, address)) continue;
    if (holder.pid == self) return {};
    if (found == nullptr || found->pid == 0) found = &holder;
  }
  if (found == nullptr) return {};
  if (found->pid == 0 && found->uid == 0) return "the kernel (rxe) or a process of root";
  return rdma::holder_in_words(*found);
}

UdpPortHolders UdpPortHolders::read(rdma::DeviceKind kind) {
  UdpPortHolders made;
  if (kind == rdma::DeviceKind::kVerbena && !udp_is_off()) {
    made.holders_ = rdma::gather_port_holders(rdma::kRoceUdpPort);
  }
  return made;
}

std::string UdpPortHolders::of(const Gid& address) const {
  return udp_port_holder(holders_, address, static_cast<std::uint32_t>(::getpid()));
}

}  // namespace verbena::cli
