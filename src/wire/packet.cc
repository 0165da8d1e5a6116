#include "wire/packet.h"

#include <new>
#include <type_traits>

namespace verbena::wire {
namespace {

// The sizes of the two ends have been checked against OpcodeRow::header_size before these run.

// Decodes in place: a copy of a header whose fields have just been stored one by one waits for those stores.
template <class T>
const std::byte* take(const std::byte* at, T& header) noexcept {
  static_assert(std::is_trivially_destructible_v<T>);
  ::new (&header) T(T::decode(std::span<const std::byte, T::kSize>(at, T::kSize)));
  return at + T::kSize;
}

template <class T>
std::byte* put(std::byte* at, const T& header) noexcept {
  header.encode(std::span<std::byte, T::kSize>(at, T::kSize));
  return at + T::kSize;
}

void decode_extensions(const std::byte* at, HeaderSet headers, Packet& packet) noexcept {
  if (headers.has(Header::kXrceth)) at = take(at, packet.xrceth);
  if (headers.has(Header::kDeth)) at = take(at, packet.deth);
  if (headers.has(Header::kFeth)) at = take(at, packet.feth);
  if (headers.has(Header::kReth)) at = take(at, packet.reth);
  if (headers.has(Header::kAtomicEth)) at = take(at, packet.atomic_eth);
  if (headers.has(Header::kAeth)) at = take(at, packet.aeth);
  if (headers.has(Header::kAtomicAckEth)) at = take(at, packet.atomic_ack_eth);
  if (headers.has(Header::kImmDt)) at = take(at, packet.imm_dt);
  if (headers.has(Header::kIeth)) at = take(at, packet.ieth);
  if (headers.has(Header::kSelectiveEth)) take(at, packet.selective_eth);
}

void encode_extensions(std::byte* at, HeaderSet headers, const Packet& packet) noexcept {
  if (headers.has(Header::kXrceth)) at = put(at, packet.xrceth);
  if (headers.has(Header::kDeth)) at = put(at, packet.deth);
  if (headers.has(Header::kFeth)) at = put(at, packet.feth);
  if (headers.has(Header::kReth)) at = put(at, packet.reth);
  if (headers.has(Header::kAtomicEth)) at = put(at, packet.atomic_eth);
  if (headers.has(Header::kAeth)) at = put(at, packet.aeth);
  if (headers.has(Header::kAtomicAckEth)) at = put(at, packet.atomic_ack_eth);
  if (headers.has(Header::kImmDt)) at = put(at, packet.imm_dt);
  if (headers.has(Header::kIeth)) at = put(at, packet.ieth);
  if (headers.has(Header::kCnpReserved)) FieldWriter(at).zeros(kCnpReservedSize);
  if (headers.has(Header::kSelectiveEth)) put(at, packet.selective_eth);
}

}  // namespace

std::size_t udp_payload_size(Opcode opcode, std::size_t payload_size, bool has_icrc) noexcept {
  return row_of(opcode).header_size + payload_size + pad_count(payload_size) + (has_icrc ? kIcrcSize : 0);
}

Drop decode_packet(std::span<const std::byte> udp_payload, bool has_icrc, Packet& packet) noexcept {
  const std::size_t trailer = has_icrc ? kIcrcSize : 0;
  if (udp_payload.size() < Bth::kSize + trailer) return Drop::kTruncated;
  const auto covered = udp_payload.first(udp_payload.size() - trailer);

  take(covered.data(), packet.bth);
  if (packet.bth.transport_version != 0) return Drop::kBadTransportVersion;
  const OpcodeRow& row = row_of(packet.bth.opcode);
  if (!row.is_known()) return Drop::kUnknownOpcode;
  if (covered.size() < row.header_size) return Drop::kTruncated;
  decode_extensions(covered.data() + Bth::kSize, row.headers, packet);

  const auto padded = covered.subspan(row.header_size);
  const std::size_t pad = packet.bth.pad_count;
  if (pad > padded.size() || padded.size() % 4 != 0) return Drop::kBadPadCount;
  packet.payload = padded.first(padded.size() - pad);
  return Drop::kNone;
}

std::size_t encode_headers(const Packet& packet, std::size_t payload_size, std::span<std::byte> out) noexcept {
  const OpcodeRow& row = row_of(packet.bth.opcode);
  if (!row.is_known() || out.size() < row.header_size) return 0;
  Bth bth = packet.bth;
  bth.pad_count = pad_count(payload_size);
  encode_extensions(put(out.data(), bth), row.headers, packet);
  return row.header_size;
}

std::size_t encode_headers(const Packet& packet, std::span<std::byte> out) noexcept {
  return encode_headers(packet, packet.payload.size(), out);
}

}  // namespace verbena::wire
