#include "wire/infiniband_header.h"

#include <algorithm>

#include "wire/field_reader.h"
#include "wire/field_writer.h"
#include "wire/packet.h"

namespace verbena::wire {
namespace {

constexpr std::uint8_t kNextIsBth = 2;
constexpr std::uint8_t kNextIsGrh = 3;
constexpr std::uint16_t kLengthMask = 0x7ff;
constexpr std::uint32_t kIpVersion = 6;
constexpr std::uint32_t kFlowLabel = 0xfffff;

void copy_gid(const Gid& gid, std::byte* out) noexcept {
  std::transform(gid.bytes.begin(), gid.bytes.end(), out, [](std::uint8_t byte) { return std::byte{byte}; });
}

Gid read_gid(const std::byte* at) noexcept {
  Gid gid;
  std::transform(at, at + gid.bytes.size(), gid.bytes.begin(),
                 [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return gid;
}

Drop read_grh(std::span<const std::byte> packet, std::size_t whole, Envelope& envelope) noexcept {
  if (packet.size() < kMaxInfinibandHeaderSize) return Drop::kTruncated;
  FieldReader fields(packet.data() + kLrhSize);
  const std::uint32_t first = fields.u32();
  const std::size_t length = fields.u16();
  const std::uint8_t next = fields.u8();
  envelope.hop_limit = fields.u8();
  envelope.traffic_class = static_cast<std::uint8_t>(first >> 20);
  envelope.link.flow_label = first & kFlowLabel;
  envelope.link.has_grh = true;
  envelope.source = read_gid(packet.data() + kMaxInfinibandHeaderSize - 2 * sizeof(Gid));
  envelope.destination = read_gid(packet.data() + kMaxInfinibandHeaderSize - sizeof(Gid));
  if (first >> 28 != kIpVersion || next != kNextHeaderIba) return Drop::kUnknownOpcode;
  return length == whole - kMaxInfinibandHeaderSize ? Drop::kNone : Drop::kTruncated;
}

}  // namespace

void write_infiniband_grh(const Envelope& envelope, std::size_t size,
                          std::span<std::byte, kInfinibandGrhSize> out) noexcept {
  FieldWriter fields(out.data());
  fields.u32((kIpVersion << 28) | (std::uint32_t{envelope.traffic_class} << 20) |
             (envelope.link.flow_label & kFlowLabel));
  fields.u16(static_cast<std::uint16_t>(size));
  fields.u8(kNextHeaderIba);
  fields.u8(envelope.hop_limit);
  copy_gid(envelope.source, out.data() + kInfinibandGrhSize - 2 * sizeof(Gid));
  copy_gid(envelope.destination, out.data() + kInfinibandGrhSize - sizeof(Gid));
}

InfinibandHeader::InfinibandHeader(const Envelope& envelope, std::size_t size) noexcept
    : size_(envelope.link.has_grh ? kMaxInfinibandHeaderSize : kLrhSize) {
  const LinkRoute& link = envelope.link;
  FieldWriter fields(bytes_.data());
  fields.u8(0);
  fields.u8(static_cast<std::uint8_t>((link.service_level << 4) | (link.has_grh ? kNextIsGrh : kNextIsBth)));
  fields.u16(link.destination_lid);
  fields.u16(static_cast<std::uint16_t>(((size_ + size) / 4) & kLengthMask));
  fields.u16(link.source_lid);
  if (link.has_grh) write_infiniband_grh(envelope, size, std::span(bytes_).subspan<kLrhSize, kInfinibandGrhSize>());
}

Drop decode_infiniband_header(std::span<const std::byte> packet, bool has_icrc, InfinibandHeaderView& view) noexcept {
  view = {};
  if (packet.size() < kLrhSize) return Drop::kTruncated;
  const std::size_t whole = packet.size() + (has_icrc ? 0 : kIcrcSize);
  FieldReader fields(packet.data());
  const std::uint8_t version = fields.u8() & 0xf;
  const std::uint8_t service = fields.u8();
  LinkRoute& link = view.envelope.link;
  link.service_level = service >> 4;
  link.destination_lid = fields.u16();
  const std::size_t words = fields.u16() & kLengthMask;
  link.source_lid = fields.u16();
  if (version != 0) return Drop::kBadTransportVersion;
  if (words * 4 != whole) return Drop::kTruncated;
  if (link.destination_lid == 0) return Drop::kUnknownLid;
  view.size = kLrhSize;
  switch (service & 0x3) {
    case kNextIsBth:
      return Drop::kNone;
    case kNextIsGrh:
      view.size = kMaxInfinibandHeaderSize;
      return read_grh(packet, whole, view.envelope);
    default:
      return Drop::kUnknownOpcode;
  }
}

}  // namespace verbena::wire
