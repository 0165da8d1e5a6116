// The packet decoder, its inverse and the ICRC.
//
// Input: one byte of choices (bit 0: with ICRC, bit 1: IPv4, bit 2: DF of the sender), two bytes of IPv4 ID, then the
// UDP payload. Holds: what decodes encodes back to the same bytes but for reserved bits and the content of the pad; the
// ICRC does not depend on scattering; it verifies when made and the ID of a foreign sender is found.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_order.h"
#include "require.h"
#include "wire/icrc.h"
#include "wire/network_header.h"
#include "wire/packet.h"

namespace verbena::wire {
namespace {

using fuzz::require;
using Bytes = std::vector<std::byte>;
using ConstBytes = std::span<const std::byte>;

struct Choices {
  bool has_icrc = false;
  bool ipv4 = false;
  bool dont_fragment = false;
  std::uint16_t ipv4_id = 0;
};

constexpr std::size_t kChoicesSize = 3;

Choices read_choices(ConstBytes input) {
  const auto flags = std::to_integer<unsigned>(input[0]);
  return {(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, load_be16(input.data() + 1)};
}

// The headers of a received packet with what a sender must leave zero set to zero.
Bytes without_reserved(ConstBytes headers, HeaderSet set) {
  Bytes bytes(headers.begin(), headers.end());
  bytes[4] &= std::byte{0xc0};
  bytes[8] &= std::byte{0x80};
  std::size_t at = Bth::kSize;
  if (set.has(Header::kXrceth)) {
    bytes[at] = std::byte{0};
    at += Xrceth::kSize;
  }
  if (set.has(Header::kDeth)) bytes[at + 4] = std::byte{0};
  if (set.has(Header::kFeth)) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 3, std::byte{0});
    bytes[at + 3] &= std::byte{0x3f};
  }
  if (set.has(Header::kCnpReserved)) std::fill(bytes.begin() + Bth::kSize, bytes.end(), std::byte{0});
  return bytes;
}

void check_codec(ConstBytes udp_payload, bool has_icrc) {
  Packet packet;
  if (decode_packet(udp_payload, has_icrc, packet) != Drop::kNone) return;
  const OpcodeRow& row = row_of(packet.bth.opcode);
  require(udp_payload_size(packet.bth.opcode, packet.payload.size(), has_icrc) == udp_payload.size(), "sizes agree");
  require(packet.payload.empty() || packet.payload.data() == udp_payload.data() + row.header_size, "payload in place");
  std::array<std::byte, kMaxHeaderSize> out;
  const std::size_t size = encode_headers(packet, out);
  require(size == row.header_size, "all headers are written");
  const Bytes expected = without_reserved(udp_payload.first(size), row.headers);
  require(std::equal(expected.begin(), expected.end(), out.begin()), "headers encode back");
}

void check_icrc(ConstBytes udp_payload, const Choices& choices) {
  Envelope envelope;
  if (choices.ipv4) {
    envelope.source = Gid::from_ipv4(0x0a090001);
    envelope.destination = Gid::from_ipv4(0x0a090002);
  }
  const NetworkHeader ours(envelope, udp_payload.size());
  verify_icrc(ours.bytes(), udp_payload);
  verify_icrc_of_unknown_id(ours.bytes(), udp_payload);
  if (udp_payload.size() < Bth::kSize + kIcrcSize) return;

  const auto covered = udp_payload.first(udp_payload.size() - kIcrcSize);
  const std::size_t cut = choices.ipv4_id % (covered.size() + 1);
  const std::array<ConstBytes, 2> parts{covered.first(cut), covered.subspan(cut)};
  require(compute_icrc(ours.bytes(), parts) == compute_icrc(ours.bytes(), covered), "scattering does not matter");

  Bytes theirs(ours.bytes().begin(), ours.bytes().end());
  if (choices.ipv4) {
    store_be16(theirs.data() + 4, choices.ipv4_id);
    store_be16(theirs.data() + 6, choices.dont_fragment ? 0x4000 : 0);
  }
  Bytes sealed(udp_payload.begin(), udp_payload.end());
  store_icrc(compute_icrc(theirs, covered), std::span(sealed).last<kIcrcSize>());
  require(verify_icrc(theirs, sealed).strength == IcrcStrength::kExact, "what was made verifies");
  const IcrcCheck check = verify_icrc_of_unknown_id(ours.bytes(), sealed);
  require(check.is_good(), "the ID of the sender is found");
  require(!choices.ipv4 || (check.ipv4_id == choices.ipv4_id && check.dont_fragment == choices.dont_fragment),
          "the ID found is the sender's");
}

}  // namespace
}  // namespace verbena::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena::wire;
  const auto input = std::as_bytes(std::span(data, size));
  if (input.size() < kChoicesSize || input.size() > 0x8000) return 0;
  const Choices choices = read_choices(input);
  const auto udp_payload = input.subspan(kChoicesSize);
  check_codec(udp_payload, choices.has_icrc);
  check_icrc(udp_payload, choices);
  return 0;
}
