// Datagrams of 84 bytes (a BTH, a DETH and 64 bytes of payload) between two processes of a host: what the ring costs
// on one thread, what an empty poll costs, the half round trip, and the rate of one sender and one receiver.
#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/packet_ring.h"
#include "transport/shm/exchange.h"

namespace verbena::transport {
namespace {

constexpr std::size_t kHeaderBytes = 20;
constexpr std::size_t kPayloadBytes = 64;
constexpr std::size_t kBatch = 32;

class NoDrops final : public DropCounter {
 public:
  void count(Drop, std::uint64_t) noexcept override { std::abort(); }
};

class CountingReceiver final : public Receiver {
 public:
  Receipt on_datagram(const Incoming& datagram) noexcept override {
    benchmark::DoNotOptimize(datagram.bytes.data());
    ++count;
    return Receipt::kTaken;
  }
  std::size_t count = 0;
};

// Datagrams in two parts, as the device sends them.
class Datagrams {
 public:
  Datagrams() {
    batch_.fill({.envelope = &envelope_,
                 .parts = parts_,
                 .size = kHeaderBytes + kPayloadBytes,
                 .slot = Slot{},
                 .has_icrc = false,
                 .network_header = {}});
  }
  std::span<const Outgoing> first(std::size_t count) const { return std::span(batch_).first(count); }

 private:
  Envelope envelope_{.source = Gid::from_ipv4(0x0a000001), .destination = Gid::from_ipv4(0x0a000002)};
  std::array<std::byte, kHeaderBytes> header_{};
  std::array<std::byte, kPayloadBytes> payload_{};
  std::array<ConstBytes, 2> parts_{header_, payload_};
  std::array<Outgoing, kBatch> batch_{};
};

std::unique_ptr<Exchange> open_exchange(DropCounter& drops) {
  ExchangeOptions options;
  options.slot_offset = static_cast<std::uint32_t>(::getpid());
  options.stall_limit = std::chrono::hours(1);
  auto exchange = Exchange::open(options, drops);
  if (!exchange) std::abort();
  return std::move(*exchange);
}

// A process that runs `work(exchange)` for ever at the other end; killed with its owner.
template <class Work>
class Peer {
 public:
  explicit Peer(Work work) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      NoDrops drops;
      const auto exchange = open_exchange(drops);
      const auto slot = exchange->slot().value();
      if (::write(ends[1], &slot, 1) != 1) ::_exit(1);
      for (;;) work(*exchange);
    }
    std::uint8_t slot = 0;
    if (::read(ends[0], &slot, 1) != 1) std::abort();
    slot_ = Slot(slot);
    for (const int end : ends) ::close(end);
  }
  ~Peer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  Slot slot() const { return slot_; }

 private:
  pid_t pid_ = -1;
  Slot slot_;
};

void push_and_pop(benchmark::State& state) {
  struct alignas(host::kCacheLine) Line {
    std::array<std::byte, host::kCacheLine> bytes{};
  };
  std::vector<Line> lines(host::ring_memory_bytes(1 << 18) / sizeof(Line));
  const auto memory = std::as_writable_bytes(std::span(lines));
  host::format_ring(memory);
  host::RingProducer producer(memory);
  host::RingConsumer consumer(memory);
  const Datagrams datagrams;
  const Outgoing& one = datagrams.first(1)[0];
  for (auto _ : state) {
    host::RingRecord record;
    producer.push(*one.envelope, one.parts, one.size, false);
    producer.publish();
    consumer.pop(record);
    benchmark::DoNotOptimize(record.bytes.data());
    consumer.release();
  }
}
BENCHMARK(push_and_pop);

void poll_that_finds_nothing(benchmark::State& state) {
  NoDrops drops;
  const auto here = open_exchange(drops);
  std::vector<std::unique_ptr<Exchange>> others;
  CountingReceiver receiver;
  const Datagrams datagrams;
  for (int i = 0; i < state.range(0); ++i) {
    others.push_back(open_exchange(drops));
    others.back()->send(here->slot(), datagrams.first(1), {});
  }
  here->serve();
  here->receive(receiver, 1000);
  for (auto _ : state) benchmark::DoNotOptimize(here->receive(receiver, kBatch));
}
BENCHMARK(poll_that_finds_nothing)->ArgName("peers")->Arg(1)->Arg(4)->Arg(16);

void to_itself(benchmark::State& state) {
  NoDrops drops;
  const auto here = open_exchange(drops);
  CountingReceiver receiver;
  const Datagrams datagrams;
  for (auto _ : state) {
    here->send(here->slot(), datagrams.first(1), {});
    here->receive(receiver, 1);
  }
}
BENCHMARK(to_itself);

// Answers each datagram with another.
class Echo final : public Receiver {
 public:
  Echo(Exchange& exchange, Slot to) : exchange_(exchange), to_(to) {}
  Receipt on_datagram(const Incoming&) noexcept override {
    exchange_.send(to_, datagrams_.first(1), {});
    return Receipt::kTaken;
  }

 private:
  Exchange& exchange_;
  Slot to_;
  Datagrams datagrams_;
};

// The time of one iteration is half a round trip.
void half_round_trip(benchmark::State& state) {
  NoDrops drops;
  const auto here = open_exchange(drops);
  const Peer peer([to = here->slot(), polls = 0U](Exchange& exchange) mutable {
    Echo echo(exchange, to);
    for (int i = 0; i < 10000; ++i) {
      if (polls++ % 1024 == 0) exchange.serve();
      exchange.receive(echo, 1);
    }
  });
  CountingReceiver receiver;
  const Datagrams datagrams;
  const auto round_trip = [&] {
    const auto wanted = receiver.count + 1;
    here->send(peer.slot(), datagrams.first(1), {});
    while (receiver.count != wanted) here->receive(receiver, 1);
  };
  here->send(peer.slot(), datagrams.first(1), {});
  while (receiver.count != 1) {
    here->serve();
    here->receive(receiver, 1);
  }
  while (state.KeepRunningBatch(2)) round_trip();
}
BENCHMARK(half_round_trip)->UseRealTime();

// One process sends batches, the other takes them.
void rate(benchmark::State& state) {
  NoDrops drops;
  const auto here = open_exchange(drops);
  const Peer peer([receiver = CountingReceiver(), polls = 0U](Exchange& exchange) mutable {
    if (polls++ % 1024 == 0) exchange.serve();
    exchange.receive(receiver, kBatch);
  });
  const Datagrams datagrams;
  const auto count = static_cast<std::size_t>(state.range(0));
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(count))) {
    for (std::size_t sent = 0; sent < count;) {
      sent += here->send(peer.slot(), datagrams.first(count - sent), {}).sent.taken;
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(rate)->ArgName("batch")->Arg(1)->Arg(kBatch)->UseRealTime();

}  // namespace
}  // namespace verbena::transport
