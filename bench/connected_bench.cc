// What a packet of a connection costs in the engine, at each end: from the work request to the transport and back with
// the acknowledgement, and from the packet to its answer.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/testing/connection_bench.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;

// Post, poll_transmit and on_transmitted of each packet, the acknowledgement of the last, poll of the completion.
void write_packets(benchmark::State& state) {
  const auto packets = static_cast<std::uint32_t>(state.range(0));
  ConnectionBench end;
  end.bring_up();
  const SendRequest request = end.request(SendOpcode::kRdmaWrite, packets * ConnectionBench::kMtu);
  wire::Packet acknowledgement = end.incoming(wire::Opcode::kRcAcknowledge, ConnectionBench::kSendPsn - 1);
  acknowledgement.aeth = {wire::Syndrome::ack(0x1f), 0};
  const Envelope envelope = end.envelope();
  Transmit packet;
  Completion completion;
  for (auto _ : state) {
    benchmark::DoNotOptimize(end.qp().post_send(request));
    while (end.qp().poll_transmit(end.now, packet)) end.qp().on_transmitted(1);
    acknowledgement.bth.psn = acknowledgement.bth.psn + packets;
    benchmark::DoNotOptimize(end.qp().on_response(acknowledgement, envelope, end.now));
    end.host().send_completions().queue().poll({&completion, 1});
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(write_packets)->Arg(1)->Arg(32);

// on_packet of a write of one packet, and the acknowledgement that it asks for.
void receive_write(benchmark::State& state) {
  ConnectionBench end;
  end.bring_up();
  const std::vector<std::byte> payload = testing::pattern(ConnectionBench::kMtu);
  wire::Packet packet =
      end.incoming_write(wire::Opcode::kRcWriteOnly, ConnectionBench::kReceivePsn, ConnectionBench::kMtu);
  packet.payload = payload;
  const Envelope envelope = end.envelope();
  Transmit answer;
  for (auto _ : state) {
    benchmark::DoNotOptimize(end.qp().on_packet(packet, envelope, payload.size() + 32, end.now));
    while (end.qp().poll_response(end.now, answer)) end.qp().on_responded(1);
    ++packet.bth.psn;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(receive_write);

// on_packet of a read request, and its answers.
void answer_read(benchmark::State& state) {
  const auto packets = static_cast<std::uint32_t>(state.range(0));
  ConnectionBench end;
  end.bring_up();
  wire::Packet packet =
      end.incoming_write(wire::Opcode::kRcReadRequest, ConnectionBench::kReceivePsn, packets * ConnectionBench::kMtu);
  const Envelope envelope = end.envelope();
  Transmit answer;
  for (auto _ : state) {
    benchmark::DoNotOptimize(end.qp().on_packet(packet, envelope, 32, end.now));
    while (end.qp().poll_response(end.now, answer)) end.qp().on_responded(1);
    packet.bth.psn = packet.bth.psn + packets;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(answer_read)->Arg(1)->Arg(32);

}  // namespace
}  // namespace verbena::engine
