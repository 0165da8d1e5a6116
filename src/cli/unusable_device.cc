#include "cli/unusable_device.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "rdma/doctor_process.h"

namespace verbena::cli {

std::string why_unusable(rdma::DeviceKind kind, const Error& error) {
  if (kind != rdma::DeviceKind::kVerbena) return error.message;
  return error.message + " (VERBENA_LOG=error tells more)";
}

DeviceSettings settings_for_listing() {
  auto holders = rdma::gather_port_holders(rdma::kRoceUdpPort);
  for (auto& holder : rdma::gather_port_holders(rdma::kInfinibandUdpPort)) holders.push_back(std::move(holder));
  return settings_for_listing(holders);
}

DeviceSettings settings_for_listing(const std::vector<rdma::PortHolder>& holders) {
  DeviceSettings settings;
  const char* asked = std::getenv("VERBENA_LOG");
  if (asked != nullptr && *asked != '\0') return settings;
  const auto user = static_cast<std::uint32_t>(::geteuid());
  // Devices of this user bind one address each, and share it.
  const bool held = std::any_of(holders.begin(), holders.end(), [user](const rdma::PortHolder& holder) {
    return holder.uid != user || holder.address == "0.0.0.0" || holder.address == "::";
  });
  if (held) settings.log = "error";
  return settings;
}

}  // namespace verbena::cli
