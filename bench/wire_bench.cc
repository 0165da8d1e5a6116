// What the wire room costs for each packet.
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "wire/icrc.h"
#include "wire/network_header.h"
#include "wire/packet.h"

namespace verbena::wire {
namespace {

constexpr Envelope kEnvelope{Gid::from_ipv4(0x0a090001), Gid::from_ipv4(0x0a090002), 0xc123};

Packet ud_packet(std::span<const std::byte> payload) {
  Packet packet;
  packet.bth.opcode = Opcode::kUdSendOnly;
  packet.bth.destination_qpn = Qpn(0x010011);
  packet.bth.psn = Psn(77);
  packet.deth = {Qkey(0x11111111), Qpn(0x020012)};
  packet.payload = payload;
  return packet;
}

std::size_t size_of_run(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

// A whole UD packet with its ICRC.
std::vector<std::byte> ud_bytes(std::size_t payload_size, std::span<const std::byte> network_header) {
  const std::vector<std::byte> payload(payload_size, std::byte{0x5a});
  std::vector<std::byte> bytes(udp_payload_size(Opcode::kUdSendOnly, payload_size, true));
  const std::size_t header_size = encode_headers(ud_packet(payload), bytes);
  std::copy(payload.begin(), payload.end(), bytes.begin() + static_cast<std::ptrdiff_t>(header_size));
  const auto covered = std::span(bytes).first(bytes.size() - kIcrcSize);
  store_icrc(compute_icrc(network_header, covered), std::span(bytes).last<kIcrcSize>());
  return bytes;
}

void decode_ud(benchmark::State& state) {
  const auto bytes = ud_bytes(64, NetworkHeader(kEnvelope, 88).bytes());
  Packet packet;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(decode_packet(bytes, true, packet));
    benchmark::DoNotOptimize(packet);
  }
}
BENCHMARK(decode_ud);

void encode_ud(benchmark::State& state) {
  const std::array<std::byte, 64> payload{};
  Packet packet = ud_packet(payload);
  std::array<std::byte, kMaxHeaderSize> out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(packet);
    benchmark::DoNotOptimize(encode_headers(packet, out));
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(encode_ud);

void network_header(benchmark::State& state) {
  Envelope envelope = kEnvelope;
  for (auto _ : state) {
    benchmark::DoNotOptimize(envelope);
    const NetworkHeader header(envelope, 88);
    benchmark::DoNotOptimize(header.bytes().data());
  }
}
BENCHMARK(network_header);

void grh(benchmark::State& state) {
  Envelope envelope = kEnvelope;
  std::array<std::byte, kGrhSize> out;
  for (auto _ : state) {
    benchmark::DoNotOptimize(envelope);
    write_grh(envelope, 88, out);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(grh);

void icrc_make(benchmark::State& state) {
  const std::vector<std::byte> payload(size_of_run(state), std::byte{0x5a});
  std::array<std::byte, kMaxHeaderSize> headers;
  const std::size_t header_size = encode_headers(ud_packet(payload), headers);
  const std::array<std::span<const std::byte>, 2> parts{std::span(headers).first(header_size), payload};
  const NetworkHeader header(kEnvelope, header_size + payload.size() + kIcrcSize);
  for (auto _ : state) {
    benchmark::DoNotOptimize(payload.data());
    benchmark::DoNotOptimize(compute_icrc(header.bytes(), parts));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(icrc_make)->Arg(64)->Arg(1024)->Arg(4096);

void icrc_verify(benchmark::State& state) {
  const std::size_t size = udp_payload_size(Opcode::kUdSendOnly, size_of_run(state), true);
  const NetworkHeader header(kEnvelope, size);
  const auto bytes = ud_bytes(size_of_run(state), header.bytes());
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(verify_icrc_of_unknown_id(header.bytes(), bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(icrc_verify)->Arg(64)->Arg(1024)->Arg(4096);

// From a sender whose IPv4 ID is not 0: kernel rxe, and hardware.
void icrc_verify_foreign_id(benchmark::State& state) {
  const std::size_t size = udp_payload_size(Opcode::kUdSendOnly, size_of_run(state), true);
  const NetworkHeader ours(kEnvelope, size);
  std::vector<std::byte> theirs(ours.bytes().begin(), ours.bytes().end());
  theirs[4] = std::byte{0x71};
  theirs[5] = std::byte{0x8c};
  const auto bytes = ud_bytes(size_of_run(state), theirs);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(verify_icrc_of_unknown_id(ours.bytes(), bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(icrc_verify_foreign_id)->Arg(64)->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace verbena::wire
