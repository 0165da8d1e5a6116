// The hot paths of the engine: what a datagram costs between the work request and the transport, and back.
#include <array>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "engine/testing/workbench.h"

namespace verbena::engine {
namespace {

using testing::Host;

// Two hosts and a queue pair on the first that is ready to send and receive.
struct Rig {
  explicit Rig(QpCapabilities capabilities = {256, 256, 1, 1, 64}) : qp(config(capabilities)) {
    testing::bring_to(qp, QpState::kReadyToSend, here.port());
  }
  QpConfig config(QpCapabilities capabilities) {
    QpConfig made = here.config(100);
    made.capabilities = capabilities;
    return made;
  }

  Host here{1};
  Host there{2};
  AddressHandle address = here.address_of(there);
  QueuePair qp;
  Transmit packet;
};

SendRequest request_to(const AddressHandle& address, std::span<const Sge> sges, std::uint32_t flags) {
  SendRequest request;
  request.flags = flags;
  request.sges = sges;
  request.address = &address;
  request.remote_qpn = 200;
  request.remote_qkey = testing::kQkey;
  return request;
}

// Post, poll_transmit, on_transmitted, poll of the completion, one packet at a time.
void send_one(benchmark::State& state, std::uint32_t size, std::uint32_t flags) {
  Rig rig;
  const Sge sge = rig.here.sge(0, size);
  const SendRequest request = request_to(rig.address, {&sge, 1}, flags);
  Completion completion;
  for (auto _ : state) {
    benchmark::DoNotOptimize(rig.qp.post_send(request));
    benchmark::DoNotOptimize(rig.qp.poll_transmit({}, rig.packet));
    rig.qp.on_transmitted(1);
    if ((flags & kSendSignaled) != 0) rig.here.send_completions().queue().poll({&completion, 1});
  }
  state.SetItemsProcessed(state.iterations());
}

void send_one_sge(benchmark::State& state) {
  send_one(state, 64, 0);
}
BENCHMARK(send_one_sge);

void send_one_sge_signaled(benchmark::State& state) {
  send_one(state, 64, kSendSignaled);
}
BENCHMARK(send_one_sge_signaled);

void send_inline(benchmark::State& state) {
  send_one(state, 64, kSendInline);
}
BENCHMARK(send_inline);

// Posts a window, then sends all of it: what a loaded queue pair does. Walks over many slots, so the cache counts.
void send_batch(benchmark::State& state) {
  const auto window = static_cast<std::size_t>(state.range(0));
  Rig rig;
  const Sge sge = rig.here.sge(0, 64);
  const SendRequest request = request_to(rig.address, {&sge, 1}, 0);
  std::vector<Transmit> packets(window);
  for (auto _ : state) {
    for (std::size_t i = 0; i < window; ++i) benchmark::DoNotOptimize(rig.qp.post_send(request));
    std::size_t count = 0;
    while (count < window && rig.qp.poll_transmit({}, packets[count])) ++count;
    rig.qp.on_transmitted(count);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(window));
}
BENCHMARK(send_batch)->Arg(16)->Arg(128);

// Post of a receive, on_packet of a decoded packet, poll of the completion.
void receive_one(benchmark::State& state, bool decodes) {
  Rig rig;
  const Sge out = rig.here.sge(0, 64);
  SendRequest request = request_to(rig.address, {&out, 1}, 0);
  request.remote_qpn = 100;
  if (rig.qp.post_send(request) != 0 || !rig.qp.poll_transmit({}, rig.packet)) return;
  const std::vector<std::byte> bytes = testing::flatten(rig.packet);
  const Envelope envelope = *rig.packet.envelope;
  wire::Packet packet;
  if (wire::decode_packet(bytes, false, packet) != Drop::kNone) return;
  const Sge in = rig.here.sge(4096, 104);
  Completion completion;
  for (auto _ : state) {
    benchmark::DoNotOptimize(rig.qp.post_receive(1, {&in, 1}));
    if (decodes) benchmark::DoNotOptimize(wire::decode_packet(bytes, false, packet));
    benchmark::DoNotOptimize(rig.qp.on_packet(packet, envelope, bytes.size() + 4, {}));
    rig.here.receive_completions().queue().poll({&completion, 1});
  }
  state.SetItemsProcessed(state.iterations());
}

void receive_64(benchmark::State& state) {
  receive_one(state, false);
}
BENCHMARK(receive_64);

void decode_and_receive_64(benchmark::State& state) {
  receive_one(state, true);
}
BENCHMARK(decode_and_receive_64);

void resolve_sge(benchmark::State& state) {
  Host host(1);
  std::vector<MemoryRegion> regions(static_cast<std::size_t>(state.range(0)),
                                    host.region_of(host.bytes().data(), host.bytes().size(), 0));
  for (MemoryRegion& region : regions) static_cast<void>(host.memory().insert(region));
  std::size_t next = 0;
  std::span<std::byte> bytes;
  for (auto _ : state) {
    Sge sge = host.sge(0, 64);
    sge.lkey = regions[next].key.value();
    next = next + 1 == regions.size() ? 0 : next + 1;
    benchmark::DoNotOptimize(host.memory().resolve(host.domain(), sge, kLocalRead, bytes));
  }
}
BENCHMARK(resolve_sge)->Arg(1)->Arg(512);

void validate_address(benchmark::State& state) {
  Host here(1);
  const Host there(2);
  const AddressVector vector = here.address_of(there).vector;
  for (auto _ : state) benchmark::DoNotOptimize(validate(vector, here.port(), &here.domain()));
}
BENCHMARK(validate_address);

}  // namespace
}  // namespace verbena::engine
