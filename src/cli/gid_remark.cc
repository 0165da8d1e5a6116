#include "cli/gid_remark.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace verbena::cli {
namespace {

// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16.
bool is_private_ipv4(std::uint32_t address) noexcept {
  return (address >> 24) == 10 || (address >> 20) == 0xac1 || (address >> 16) == 0xc0a8;
}

bool is_link_local(const Gid& gid) noexcept {
  return gid.is_link_local() || (gid.is_ipv4_mapped() && (gid.ipv4() >> 16) == 0xa9fe);
}

}  // namespace

std::string_view scope_of(const Gid& gid) noexcept {
  if (gid.is_multicast()) return "multicast";
  if (gid.is_loopback()) return "loopback";
  if (is_link_local(gid)) return "link-local";
  if (gid.is_unique_local()) return "unique-local";
  if (gid.is_ipv4_mapped() && is_private_ipv4(gid.ipv4())) return "private";
  return "global";
}

GidRemark remark_on(const GidEntry& entry, const GidSurroundings& surroundings) {
  if (!surroundings.port_active) return {false, "no: the port is not active"};
  const std::string held = fmt::format("yes, on this host only: UDP port {} is held by {}", surroundings.udp_port,
                                       surroundings.udp_port_held_by);
  if (entry.type == GidType::kInfiniBand) return {true, surroundings.udp_port_held_by.empty() ? "yes" : held};
  if (surroundings.netdev.empty()) {
    return {false, "no: its interface is not in this network namespace"};
  }
  if (!surroundings.netdev_up) return {false, fmt::format("no: interface {} is down", surroundings.netdev)};
  if (!surroundings.udp_port_held_by.empty()) return {true, held};
  if (entry.type == GidType::kRoceV1) return {true, "yes, on this link only: RoCE v1 has no IP header"};
  if (entry.gid.is_loopback()) return {true, "yes, on this host only"};
  if (is_link_local(entry.gid)) return {true, "yes, on this link only"};
  return {true, "yes"};
}

std::string no_gid_in_words(const std::vector<std::string>& ports) {
  if (ports.empty()) {
    return "There is no verbs device, so there is no GID: load the driver of the card, or use Verbena's own device "
           "(verbena run).";
  }
  const bool one = ports.size() == 1;
  return fmt::format(
      "{} {} no GID. A GID is made of each address of a port's interface in this network namespace: bring "
      "that up and give it an address (ip link set IFACE up; ip address add ADDRESS/LENGTH dev IFACE).",
      fmt::join(ports, ", "), one ? "has" : "have");
}

}  // namespace verbena::cli
