// What a hit in the directory costs, on one thread and on two, beside creating an address for each send, on a fake
// device that answers at once. ah_on_device.cc measures the same on a device, beside what applications write
// themselves.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <benchmark/benchmark.h>
#include <fake_verbs/fake_verbs.h>

#include "verbena/address_directory.h"

namespace verbena {
namespace {

constexpr std::uint32_t kNetdev = 7;
constexpr std::uint64_t kBatch = 64;  // sends that one completion covers

Destination to(std::uint32_t peer) {
  Destination destination;
  destination.gid = Gid::from_ipv4(0x0a000100 + peer);
  return destination;
}

// A directory on a fake device; one for the whole program.
struct World {
  World() {
    fake::Port port;
    port.gids = {{Gid::from_ipv4(0x0a000001), IBV_GID_TYPE_ROCE_V2, kNetdev}};
    fake::reset();
    fake::add_device("fake0", {port});
    context = std::move(*Context::open("fake0"));
    domain = std::move(*ProtectionDomain::create(context));
    AhDirectoryOptions options;
    options.routes = [](const Gid&, std::uint32_t) -> Result<Route> {
      Route route;
      route.netdev = kNetdev;
      return route;
    };
    directory.emplace(std::move(*AhDirectory::create(domain, 1, options)));
  }

  static World& get() {
    static World* const world = new World;
    return *world;
  }

  std::vector<AhHandle> acquire(std::uint32_t peers) {
    std::vector<AhHandle> handles;
    for (std::uint32_t i = 0; i < peers; ++i) {
      handles.push_back(std::move(*directory->acquire(to(i), Deadline::never())));
    }
    return handles;
  }

  Context context;
  ProtectionDomain domain;
  std::optional<AhDirectory> directory;
};

std::vector<Destination> destinations_for(const benchmark::State& state, std::uint32_t peers, bool shared) {
  std::vector<Destination> destinations;
  const std::uint32_t first = shared ? 0 : peers * static_cast<std::uint32_t>(state.thread_index());
  for (std::uint32_t i = 0; i < peers; ++i) destinations.push_back(to(first + i));
  return destinations;
}

// One hit per iteration, round robin over the destinations; completions are told as a sender would.
template <class Next>
void send_all(benchmark::State& state, AhSender& sender, std::size_t peers, Next next) {
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(next(at));
    if (++at == peers) at = 0;
    if (sender.position() % kBatch == 0) sender.completed(kBatch);
  }
  if (sender.outstanding() >= kBatch) state.SkipWithError("a hit was missed");
  sender.drained();
}

void hit_by_destination(benchmark::State& state, bool shared) {
  World& world = World::get();
  const auto peers = static_cast<std::uint32_t>(state.range(0));
  const std::vector<AhHandle> handles = world.acquire(2 * peers);
  const std::vector<Destination> destinations = destinations_for(state, peers, shared);
  AhSender sender = std::move(*world.directory->make_sender());
  send_all(state, sender, peers, [&](std::size_t at) { return sender.next(destinations[at]); });
}

void hit_by_handle(benchmark::State& state) {
  World& world = World::get();
  const auto peers = static_cast<std::uint32_t>(state.range(0));
  const std::vector<AhHandle> handles = world.acquire(peers);
  AhSender sender = std::move(*world.directory->make_sender());
  send_all(state, sender, peers, [&](std::size_t at) { return sender.next(handles[at]); });
}

BENCHMARK_CAPTURE(hit_by_destination, same, true)->Arg(1)->Arg(64)->Arg(1000)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(hit_by_destination, different, false)->Arg(1)->Arg(64)->Arg(1000)->Threads(2)->UseRealTime();
BENCHMARK(hit_by_handle)->Arg(1)->Arg(64)->Arg(1000)->Threads(1)->Threads(2)->UseRealTime();

void create_per_send(benchmark::State& state) {
  World& world = World::get();
  const Destination destination = to(0);
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  attributes.grh.hop_limit = 64;
  std::memcpy(attributes.grh.dgid.raw, destination.gid.bytes.data(), destination.gid.bytes.size());
  for (auto _ : state) {
    ibv_ah* address = ibv_create_ah(world.domain.get(), &attributes);
    benchmark::DoNotOptimize(address);
    ibv_destroy_ah(address);
  }
}

// The fake keeps each address handle that ever was, to find misuse: few are enough to tell the cost.
BENCHMARK(create_per_send)->Iterations(20000);

}  // namespace
}  // namespace verbena
