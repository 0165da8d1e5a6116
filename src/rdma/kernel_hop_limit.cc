#include "rdma/kernel_hop_limit.h"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <net/if.h>

namespace verbena::rdma {

std::optional<std::uint8_t> kernel_hop_limit(const Gid& destination, const Route& route) {
  if (route.hop_limit != 0) return route.hop_limit;
  std::string file = "/proc/sys/net/ipv4/ip_default_ttl";
  if (!destination.is_ipv4_mapped()) {
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(route.netdev, name.data()) == nullptr) return std::nullopt;
    file = fmt::format("/proc/sys/net/ipv6/conf/{}/hop_limit", name.data());
  }
  unsigned number = 0;
  if (!(std::ifstream(file) >> number) || number == 0 || number > 255) return std::nullopt;
  return static_cast<std::uint8_t>(number);
}

std::string apply_kernel_hop_limit(DeviceKind kind, GidType type, std::optional<std::uint8_t> kernels,
                                   ibv_ah_attr& attributes) {
  if (kind != DeviceKind::kKernelSoftware || type != GidType::kRoceV2 || attributes.is_global == 0) return {};
  const std::uint8_t asked = attributes.grh.hop_limit;
  if (!kernels) return fmt::format("grh.hop_limit: {} asked for, that of the kernel's route made", asked);
  if (*kernels == asked) return {};
  attributes.grh.hop_limit = *kernels;
  return fmt::format("grh.hop_limit: {} asked for, {} made (that of the kernel's route)", asked, *kernels);
}

}  // namespace verbena::rdma
