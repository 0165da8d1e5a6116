#include "wire/network_header.h"

#include <algorithm>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {
namespace {

constexpr std::uint8_t kVersionAndIhl = 0x45;  // IPv4, five words: no options
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentMask = 0x3fff;  // more fragments, and the offset
constexpr std::uint8_t kProtocolUdp = 17;

void copy_gid(const Gid& gid, std::byte* out) noexcept {
  std::transform(gid.bytes.begin(), gid.bytes.end(), out, [](std::uint8_t byte) { return std::byte{byte}; });
}

Gid read_gid(const std::byte* at) noexcept {
  Gid gid;
  std::transform(at, at + gid.bytes.size(), gid.bytes.begin(),
                 [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return gid;
}

// The sum of the header's ten words in ones' complement, complemented: 0 for a header that holds its right checksum.
std::uint16_t ipv4_checksum(const std::byte* header) noexcept {
  FieldReader words(header);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kIpv4Size / 2; ++i) sum += words.u16();
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void write_ipv4(const Envelope& envelope, std::size_t udp_size, std::byte* out) noexcept {
  FieldWriter fields(out);
  fields.u8(kVersionAndIhl);
  fields.u8(envelope.traffic_class);
  fields.u16(static_cast<std::uint16_t>(kIpv4Size + udp_size));
  fields.u16(0);
  fields.u16(kDontFragment);
  fields.u8(envelope.hop_limit);
  fields.u8(kProtocolUdp);
  FieldWriter checksum = fields;
  fields.u16(0);
  fields.u32(envelope.source.ipv4());
  fields.u32(envelope.destination.ipv4());
  checksum.u16(ipv4_checksum(out));
}

void write_ipv6(const Envelope& envelope, std::size_t udp_size, std::byte* out) noexcept {
  FieldWriter fields(out);
  fields.u32((6U << 28) | (std::uint32_t{envelope.traffic_class} << 20));
  fields.u16(static_cast<std::uint16_t>(udp_size));
  fields.u8(kProtocolUdp);
  fields.u8(envelope.hop_limit);
  copy_gid(envelope.source, out + kIpv6Size - 2 * sizeof(Gid));
  copy_gid(envelope.destination, out + kIpv6Size - sizeof(Gid));
}

// Reads the IP header; the number of bytes that UDP may fill behind it, or nothing.
std::optional<std::size_t> read_ipv4(std::span<const std::byte> packet, NetworkHeaderView& view) noexcept {
  if (packet.size() < kIpv4Size) return std::nullopt;
  FieldReader fields(packet.data());
  if (fields.u8() != kVersionAndIhl) return std::nullopt;
  view.envelope.traffic_class = fields.u8();
  const std::size_t total = fields.u16();
  view.ipv4_id = fields.u16();
  const std::uint16_t fragment = fields.u16();
  view.dont_fragment = (fragment & kDontFragment) != 0;
  view.envelope.hop_limit = fields.u8();
  const bool is_udp = fields.u8() == kProtocolUdp;
  fields.skip(2);
  view.envelope.source = Gid::from_ipv4(fields.u32());
  view.envelope.destination = Gid::from_ipv4(fields.u32());
  view.checksum_valid = ipv4_checksum(packet.data()) == 0;
  if (!is_udp || (fragment & kFragmentMask) != 0 || total < kIpv4Size || total > packet.size()) return std::nullopt;
  return total - kIpv4Size;
}

std::optional<std::size_t> read_ipv6(std::span<const std::byte> packet, NetworkHeaderView& view) noexcept {
  if (packet.size() < kIpv6Size) return std::nullopt;
  FieldReader fields(packet.data());
  const std::uint32_t first = fields.u32();
  view.envelope.traffic_class = static_cast<std::uint8_t>(first >> 20);
  view.flow_label = first & 0xfffff;
  const std::size_t size = fields.u16();
  const bool is_udp = fields.u8() == kProtocolUdp;
  view.envelope.hop_limit = fields.u8();
  view.envelope.source = read_gid(packet.data() + kIpv6Size - 2 * sizeof(Gid));
  view.envelope.destination = read_gid(packet.data() + kIpv6Size - sizeof(Gid));
  if (!is_udp || size > packet.size() - kIpv6Size) return std::nullopt;
  return size;
}

}  // namespace

NetworkHeader::NetworkHeader(const Envelope& envelope, std::size_t udp_payload_size,
                             std::uint16_t destination_port) noexcept {
  const std::size_t udp_size = kUdpSize + udp_payload_size;
  const bool ipv4 = is_ipv4(envelope);
  const std::size_t ip_size = ipv4 ? kIpv4Size : kIpv6Size;
  (ipv4 ? write_ipv4 : write_ipv6)(envelope, udp_size, bytes_.data());
  FieldWriter udp(bytes_.data() + ip_size);
  udp.u16(envelope.source_port);
  udp.u16(destination_port);
  udp.u16(static_cast<std::uint16_t>(udp_size));
  udp.u16(0);
  size_ = ip_size + kUdpSize;
}

std::optional<NetworkHeaderView> parse_network_header(std::span<const std::byte> ip_packet) noexcept {
  if (ip_packet.empty()) return std::nullopt;
  NetworkHeaderView view;
  const unsigned version = std::to_integer<unsigned>(ip_packet[0]) >> 4;
  if (version != 4 && version != 6) return std::nullopt;
  const auto room = version == 4 ? read_ipv4(ip_packet, view) : read_ipv6(ip_packet, view);
  if (!room || *room < kUdpSize) return std::nullopt;

  const std::size_t ip_size = version == 4 ? kIpv4Size : kIpv6Size;
  FieldReader udp(ip_packet.data() + ip_size);
  view.envelope.source_port = udp.u16();
  view.destination_port = udp.u16();
  const std::size_t udp_size = udp.u16();
  view.udp_checksum = udp.u16();
  if (udp_size < kUdpSize || udp_size > *room) return std::nullopt;
  view.header = ip_packet.first(ip_size + kUdpSize);
  view.udp_payload = ip_packet.subspan(ip_size + kUdpSize, udp_size - kUdpSize);
  return view;
}

void write_grh(const Envelope& envelope, std::size_t udp_payload_size, std::span<std::byte, kGrhSize> out) noexcept {
  const std::size_t udp_size = kUdpSize + udp_payload_size;
  if (!is_ipv4(envelope)) {
    write_ipv6(envelope, udp_size, out.data());
    return;
  }
  constexpr std::size_t kUnused = kGrhSize - kIpv4Size;
  std::fill_n(out.begin(), kUnused, std::byte{0});
  write_ipv4(envelope, udp_size, out.data() + kUnused);
}

}  // namespace verbena::wire
