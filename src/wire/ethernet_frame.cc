#include "wire/ethernet_frame.h"

#include "wire/field_reader.h"
#include "wire/network_header.h"

namespace verbena::wire {
namespace {

constexpr std::size_t kPortsSize = 4;
constexpr std::size_t kExtensionUnit = 8;
constexpr std::size_t kMostExtensions = 8;

// Extension headers that begin with a next header and a length (RFC 8200, section 4), but for the fragment header.
constexpr std::uint8_t kHopByHop = 0;
constexpr std::uint8_t kRouting = 43;
constexpr std::uint8_t kFragment = 44;
constexpr std::uint8_t kDestinationOptions = 60;

MacAddress read_mac(FieldReader& from) noexcept {
  MacAddress mac;
  for (auto& byte : mac.bytes) byte = from.u8();
  return mac;
}

void read_ports(std::span<const std::byte> segment, std::uint8_t protocol, FrameFields& fields) noexcept {
  if ((protocol != kProtocolTcp && protocol != kProtocolUdp) || segment.size() < kPortsSize) return;
  FieldReader from(segment.data());
  fields.transport = protocol;
  fields.source_port = from.u16();
  fields.destination_port = from.u16();
}

void read_ipv4(std::span<const std::byte> packet, FrameFields& fields) noexcept {
  if (packet.size() < kIpv4Size) return;
  FieldReader from(packet.data());
  const unsigned first = from.u8();
  const std::size_t header = std::size_t{first & 0xfU} * 4;
  if (first >> 4 != 4 || header < kIpv4Size) return;
  fields.ip_version = 4;
  fields.traffic_class = from.u8();
  from.skip(4);  // total length and identification
  const std::uint16_t fragment = from.u16();
  fields.hop_limit = from.u8();
  fields.next_header = from.u8();
  from.skip(2);  // checksum
  for (std::size_t i = 0; i < 4; ++i) fields.ip_source[i] = from.u8();
  for (std::size_t i = 0; i < 4; ++i) fields.ip_destination[i] = from.u8();
  if ((fragment & 0x4000U) != 0) fields.ipv4_flags |= kIpv4DontFragment;
  if ((fragment & 0x2000U) != 0) fields.ipv4_flags |= kIpv4MoreFragments;
  const bool is_first = (fragment & 0x1fffU) == 0;
  if (is_first && header <= packet.size()) read_ports(packet.subspan(header), fields.next_header, fields);
}

// Walks over the extension headers to the transport header, if there is one in this fragment.
void read_upper_layer(std::span<const std::byte> rest, FrameFields& fields) noexcept {
  std::uint8_t protocol = fields.next_header;
  for (std::size_t count = 0; count < kMostExtensions; ++count) {
    const bool has_length = protocol == kHopByHop || protocol == kRouting || protocol == kDestinationOptions;
    if (!has_length && protocol != kFragment) break;
    if (rest.size() < kExtensionUnit) return;
    FieldReader from(rest.data());
    protocol = from.u8();
    const std::size_t units = std::size_t{from.u8()} + 1;
    if (!has_length && (from.u16() & 0xfff8U) != 0) return;  // a fragment, and not the first
    const std::size_t size = has_length ? units * kExtensionUnit : kExtensionUnit;
    if (rest.size() < size) return;
    rest = rest.subspan(size);
  }
  read_ports(rest, protocol, fields);
}

void read_ipv6(std::span<const std::byte> packet, FrameFields& fields) noexcept {
  if (packet.size() < kIpv6Size) return;
  FieldReader from(packet.data());
  const std::uint32_t first = from.u32();
  if (first >> 28 != 6) return;
  fields.ip_version = 6;
  fields.traffic_class = static_cast<std::uint8_t>(first >> 20);
  fields.flow_label = first & 0xfffffU;
  from.skip(2);  // payload length
  fields.next_header = from.u8();
  fields.hop_limit = from.u8();
  for (auto& byte : fields.ip_source) byte = from.u8();
  for (auto& byte : fields.ip_destination) byte = from.u8();
  read_upper_layer(packet.subspan(kIpv6Size), fields);
}

// The tags that stand before the type. What is left behind them.
std::span<const std::byte> read_tags(std::span<const std::byte> rest, FrameFields& fields) noexcept {
  while ((fields.ether_type == kEtherTypeVlan || fields.ether_type == kEtherTypeServiceVlan) &&
         rest.size() >= kVlanTagSize) {
    FieldReader from(rest.data());
    const std::uint16_t tag = from.u16();
    if (fields.is_tagged == 0) fields.vlan_tag = tag;
    fields.is_tagged = 1;
    fields.ether_type = from.u16();
    rest = rest.subspan(kVlanTagSize);
  }
  return rest;
}

}  // namespace

std::optional<FrameFields> read_frame(std::span<const std::byte> frame) noexcept {
  if (frame.size() < kEthernetSize) return std::nullopt;
  FrameFields fields;
  FieldReader from(frame.data());
  fields.destination = read_mac(from);
  fields.source = read_mac(from);
  fields.ether_type = from.u16();
  const auto packet = read_tags(frame.subspan(kEthernetSize), fields);
  if (fields.ether_type == kEtherTypeIpv4) read_ipv4(packet, fields);
  if (fields.ether_type == kEtherTypeIpv6) read_ipv6(packet, fields);
  return fields;
}

}  // namespace verbena::wire
