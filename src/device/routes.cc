#include "device/routes.h"

#include "wire/infiniband_header.h"

namespace verbena::device {
namespace {

const LidRoute* find_port(const Routes& routes, const LinkRoute& link) noexcept {
  return link.port < routes.infiniband.size() ? &routes.infiniband[link.port] : nullptr;
}

// The one of the address that the LID map has for the port's own LID, since the other hosts may know it by that; else
// the first of the family.
transport::UdpPort* of_family(const Routes& routes, const LidRoute& port, bool ipv4) noexcept {
  const auto known = routes.lids.address_of(port.lids.first);
  transport::UdpPort* first = nullptr;
  for (auto* const udp : port.udp_ports) {
    if (udp->address().is_ipv4_mapped() != ipv4) continue;
    if (known && udp->address() == *known) return udp;
    if (first == nullptr) first = udp;
  }
  return first;
}

// Who listens to a group does so in both families, and believes the source LID only from the address that its map has.
transport::UdpPort* of_group(const Routes& routes, const LidRoute& port) noexcept {
  const auto known = routes.lids.address_of(port.lids.first);
  if (known) {
    if (auto* const udp = of_family(routes, port, known->is_ipv4_mapped())) return udp;
  }
  auto* const ipv4 = of_family(routes, port, true);
  return ipv4 != nullptr ? ipv4 : of_family(routes, port, false);
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

std::uint16_t source_lid(const Routes& routes, const LinkRoute& link) noexcept {
  const LidRoute* const port = find_port(routes, link);
  if (port == nullptr) return 0;
  return static_cast<std::uint16_t>(port->lids.first | (link.path_bits & (port->lids.last - port->lids.first)));
}

Carrier find_carrier(const Routes& routes, const Envelope& envelope) noexcept {
  const LidRoute* const port = find_port(routes, envelope.link);
  if (port == nullptr || port->udp_ports.empty()) return {};
  const std::uint16_t lid = envelope.link.destination_lid;
  if (wire::is_multicast_lid(lid)) {
    auto* const through = of_group(routes, *port);
    return {.udp_port = through, .destination = carrier_group(lid, through->address().is_ipv4_mapped())};
  }
  const auto address = routes.lids.address_of(lid);
  if (!address) return {.udp_port = port->udp_ports.front(), .destination = port->udp_ports.front()->address()};
  return {.udp_port = of_family(routes, *port, address->is_ipv4_mapped()), .destination = *address};
}

Gid twin_of_carrier_group(const Gid& group) noexcept {
  const auto lid = static_cast<std::uint16_t>(group.bytes[14] << 8 | group.bytes[15]);
  return carrier_group(lid, !group.is_ipv4_mapped());
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
