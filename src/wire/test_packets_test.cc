#include "wire/test_packets.h"

#include <algorithm>

#include "wire/icrc.h"

namespace verbena::wire::test {
namespace {

template <class T>
T draw(Random& random) {
  return static_cast<T>(random());
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Bytes bytes_of_hex(std::string_view hex) {
  Bytes bytes;
  int high = -1;
  for (const char c : hex) {
    const int digit = digit_of(c);
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<std::byte>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

std::vector<Opcode> known_opcodes() {
  std::vector<Opcode> opcodes;
  for (int value = 0; value < 256; ++value) {
    const auto opcode = static_cast<Opcode>(value);
    if (row_of(opcode).is_known()) opcodes.push_back(opcode);
  }
  return opcodes;
}

Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

Packet random_packet(Random& random, Opcode opcode, std::span<const std::byte> payload) {
  Packet packet;
  packet.bth.opcode = opcode;
  packet.bth.solicited = (random() & 1) != 0;
  packet.bth.migration_request = (random() & 1) != 0;
  packet.bth.pad_count = pad_count(payload.size());
  packet.bth.pkey = Pkey(draw<std::uint16_t>(random));
  packet.bth.fecn = (random() & 1) != 0;
  packet.bth.becn = (random() & 1) != 0;
  packet.bth.destination_qpn = Qpn(draw<std::uint32_t>(random));
  packet.bth.ack_request = (random() & 1) != 0;
  packet.bth.psn = Psn(draw<std::uint32_t>(random));
  packet.xrceth.srqn = draw<std::uint32_t>(random) & 0xffffff;
  packet.deth = {Qkey(draw<std::uint32_t>(random)), Qpn(draw<std::uint32_t>(random))};
  packet.feth = {static_cast<std::uint8_t>(random() & 0xf), static_cast<std::uint8_t>(random() & 0x3)};
  packet.reth = {random(), MemoryKey(draw<std::uint32_t>(random)), draw<std::uint32_t>(random)};
  packet.atomic_eth = {random(), MemoryKey(draw<std::uint32_t>(random)), random(), random()};
  packet.aeth = {Syndrome(draw<std::uint8_t>(random)), draw<std::uint32_t>(random) & 0xffffff};
  packet.atomic_ack_eth = {random()};
  packet.imm_dt = {draw<std::uint32_t>(random)};
  packet.ieth = {MemoryKey(draw<std::uint32_t>(random))};
  packet.selective_eth = {{random(), random()}};
  packet.payload = payload;
  return packet;
}

Envelope random_envelope(Random& random, bool ipv4) {
  Envelope envelope;
  if (ipv4) {
    envelope.source = Gid::from_ipv4(draw<std::uint32_t>(random));
    envelope.destination = Gid::from_ipv4(draw<std::uint32_t>(random));
  } else {
    for (auto& byte : envelope.source.bytes) byte = draw<std::uint8_t>(random);
    for (auto& byte : envelope.destination.bytes) byte = draw<std::uint8_t>(random);
  }
  envelope.source_port = draw<std::uint16_t>(random);
  envelope.traffic_class = draw<std::uint8_t>(random);
  envelope.hop_limit = draw<std::uint8_t>(random);
  return envelope;
}

Bytes whole(const Packet& packet, bool has_icrc) {
  Bytes bytes(kMaxHeaderSize);
  bytes.resize(encode_headers(packet, bytes));
  bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  const auto pad = pad_bytes(packet.payload.size());
  bytes.insert(bytes.end(), pad.begin(), pad.end());
  if (has_icrc) bytes.resize(bytes.size() + kIcrcSize);
  return bytes;
}

Bytes whole_with_icrc(const Packet& packet, std::span<const std::byte> network_header) {
  Bytes bytes = whole(packet, true);
  const auto covered = std::span(bytes).first(bytes.size() - kIcrcSize);
  store_icrc(compute_icrc(network_header, covered), std::span(bytes).last<kIcrcSize>());
  return bytes;
}

bool same(const Packet& a, const Packet& b) {
  const HeaderSet headers = row_of(a.bth.opcode).headers;
  const auto agree = [&](Header header, const auto& one, const auto& other) {
    return !headers.has(header) || one == other;
  };
  return a.bth == b.bth && agree(Header::kXrceth, a.xrceth, b.xrceth) && agree(Header::kDeth, a.deth, b.deth) &&
         agree(Header::kFeth, a.feth, b.feth) && agree(Header::kReth, a.reth, b.reth) &&
         agree(Header::kAtomicEth, a.atomic_eth, b.atomic_eth) && agree(Header::kAeth, a.aeth, b.aeth) &&
         agree(Header::kAtomicAckEth, a.atomic_ack_eth, b.atomic_ack_eth) &&
         agree(Header::kImmDt, a.imm_dt, b.imm_dt) && agree(Header::kIeth, a.ieth, b.ieth) &&
         agree(Header::kSelectiveEth, a.selective_eth, b.selective_eth) &&
         std::equal(a.payload.begin(), a.payload.end(), b.payload.begin(), b.payload.end());
}

}  // namespace verbena::wire::test
