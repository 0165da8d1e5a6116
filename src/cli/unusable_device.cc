#include "cli/unusable_device.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "rdma/doctor_process.h"

namespace verbena::cli {

std::string why_unusable(rdma::DeviceKind kind, const Error& error) {
  if (kind != rdma::DeviceKind::kVerbena) return error.message;
  if (error.system_errno == EADDRINUSE) {
    return "UDP port 4791 is taken, by a kernel RoCE device (rxe: `rdma link` shows it, `rdma link delete NAME` "
           "removes "
           "it) or by another user's process (`ss -lunp sport = :4791` shows it): end that, or set VERBENA_UDP=off to "
           "stay on this host";
  }
  return error.message + " (VERBENA_LOG=error tells more)";
}

DeviceSettings settings_for_listing() {
  return settings_for_listing(rdma::gather_port_holders(rdma::kRoceUdpPort));
}

DeviceSettings settings_for_listing(const std::vector<rdma::PortHolder>& holders) {
  DeviceSettings settings;
  const char* asked = std::getenv("VERBENA_LOG");
  if (asked != nullptr && *asked != '\0') return settings;
  // The devices themselves bind one address each.
  const bool all = std::any_of(holders.begin(), holders.end(), [](const rdma::PortHolder& holder) {
    return holder.address == "0.0.0.0" || holder.address == "::";
  });
  if (all) settings.log = "off";
  return settings;
}

}  // namespace verbena::cli
