#include "device/routes.h"

#include "wire/infiniband_header.h"

namespace verbena::device {
namespace {

const LidRoute* find_port(const Routes& routes, std::uint16_t lid) noexcept {
  const auto& ports = routes.infiniband;
  auto found = std::find_if(ports.begin(), ports.end(), [lid](const auto& port) { return port.lids.contains(lid); });
  if (found == ports.end()) {
    found = std::find_if(ports.begin(), ports.end(), [lid](const auto& port) { return port.knows(lid); });
  }
  return found == ports.end() ? nullptr : &*found;
}

transport::UdpPort* of_family(const LidRoute& port, bool ipv4) noexcept {
  const auto found = std::find_if(port.udp_ports.begin(), port.udp_ports.end(),
                                  [ipv4](const auto* udp) { return udp->address().is_ipv4_mapped() == ipv4; });
  return found == port.udp_ports.end() ? nullptr : *found;
}

}  // namespace

bool is_lid_here(const Routes& routes, std::uint16_t lid) noexcept {
  const auto address = routes.lids.address_of(lid);
  return !address || routes.is_local(*address);
}

bool is_source_of_lid(const Routes& routes, std::uint16_t lid, const Gid& source) noexcept {
  const auto address = routes.lids.address_of(lid);
  if (address && *address == source) return true;
  return (!address || routes.is_local(*address)) && routes.is_local(source);
}

std::uint16_t current_lid(const Routes& routes, std::uint16_t lid) noexcept {
  const LidRoute* const port = find_port(routes, lid);
  if (port == nullptr || port->lids.contains(lid)) return lid;
  const auto path_bits = static_cast<std::uint16_t>(lid & (port->lids.last - port->lids.first));
  return static_cast<std::uint16_t>(port->lids.first | path_bits);
}

Carrier find_carrier(const Routes& routes, const Envelope& envelope) noexcept {
  const LidRoute* const port = find_port(routes, envelope.link.source_lid);
  if (port == nullptr || port->udp_ports.empty()) return {};
  const std::uint16_t lid = envelope.link.destination_lid;
  if (wire::is_multicast_lid(lid)) {
    auto* const ipv4 = of_family(*port, true);
    auto* const through = ipv4 != nullptr ? ipv4 : port->udp_ports.front();
    return {.udp_port = through, .destination = carrier_group(lid, ipv4 != nullptr)};
  }
  const auto address = routes.lids.address_of(lid);
  if (!address) return {.udp_port = port->udp_ports.front(), .destination = port->udp_ports.front()->address()};
  return {.udp_port = of_family(*port, address->is_ipv4_mapped()), .destination = *address};
}

// 239.193.x.y (RFC 2365, of the organisation), ff05::4942:xxyy (of the site).
Gid carrier_group(std::uint16_t lid, bool ipv4) noexcept {
  if (ipv4) return Gid::from_ipv4(0xefc10000U | lid);
  Gid group;
  group.bytes[0] = 0xff;
  group.bytes[1] = 0x05;
  group.bytes[12] = 0x49;
  group.bytes[13] = 0x42;
  group.bytes[14] = static_cast<std::uint8_t>(lid >> 8);
  group.bytes[15] = static_cast<std::uint8_t>(lid);
  return group;
}

}  // namespace verbena::device
