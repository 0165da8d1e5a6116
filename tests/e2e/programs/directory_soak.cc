// Very many sends over very many peers, with tenants, peers and room that come and go: seeded, bounded, and counted at
// its end.
//
//     directory_soak --sends N --peers N [--seed N] [--own ADDRESS] [--away ADDRESS] [--wait]
//
// Peers are paths (flow labels) to this host, which receive, and hosts where nobody listens. Each send
// is checked against a ledger of what ibv_create_ah made and ibv_destroy_ah took: its address handle must live, lead
// where it is sent to, and be the newest that does, or have been until two seconds ago. Each datagram received must be
// for the peer it was sent to. Whoever starts this may let addresses come and go meanwhile. Says "running", "at N" now
// and then with the memory, and "final {...}"; ends with 1 where something was wrong.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <dlfcn.h>
#include <nlohmann/json.hpp>

#include "directory/lane.h"
#include "verbena/tenant.h"

namespace verbena::e2e {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using on_device::Lane;

// An address handle that was superseded may be sent by for so long: the new one is published by another thread.
constexpr auto kGrace = 2s;

// So long after the last datagram, no more is waited for.
constexpr auto kQuiet = 100ms;

// What an address handle was made for.
struct Purpose {
  const ibv_pd* domain = nullptr;
  Gid destination;
  std::uint32_t flow_label = 0;

  friend bool operator==(const Purpose&, const Purpose&) = default;
};

struct PurposeHash {
  std::size_t operator()(const Purpose& purpose) const noexcept {
    const std::string_view gid(reinterpret_cast<const char*>(purpose.destination.bytes.data()),
                               purpose.destination.bytes.size());
    return std::hash<std::string_view>{}(gid)*31 + purpose.flow_label * 2654435761U +
           std::hash<const void*>{}(purpose.domain);
  }
};

// Every address handle on the device, and the newest for each purpose.
class Ledger {
 public:
  void made(const ibv_ah* address, const ibv_pd* domain, const ibv_ah_attr& attributes) {
    Purpose purpose{domain, {}, attributes.grh.flow_label};
    std::memcpy(purpose.destination.bytes.data(), attributes.grh.dgid.raw, purpose.destination.bytes.size());
    const std::lock_guard lock(mutex_);
    alive_[address] = purpose;
    newest_[purpose] = {address, std::chrono::steady_clock::now()};
    most_ = std::max(most_, alive_.size());
  }
  // Before the device forgets it: from then on its place may be another's.
  void gone(const ibv_ah* address) {
    const std::lock_guard lock(mutex_);
    const auto found = alive_.find(address);
    if (found == alive_.end()) return;
    const auto newest = newest_.find(found->second);
    if (newest != newest_.end() && newest->second.address == address) newest_.erase(newest);
    alive_.erase(found);
  }
  // It lives, leads there, and is the newest that does, or was until a moment ago.
  bool is_right(const ibv_ah* address, const Purpose& purpose) const {
    const std::lock_guard lock(mutex_);
    const auto found = alive_.find(address);
    if (found == alive_.end() || !(found->second == purpose)) return false;
    const auto newest = newest_.find(purpose);
    return newest == newest_.end() || newest->second.address == address ||
           std::chrono::steady_clock::now() - newest->second.when < kGrace;
  }
  std::size_t alive() const {
    const std::lock_guard lock(mutex_);
    return alive_.size();
  }
  std::size_t most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  struct Newest {
    const ibv_ah* address = nullptr;
    std::chrono::steady_clock::time_point when;
  };

  mutable std::mutex mutex_;
  std::unordered_map<const ibv_ah*, Purpose> alive_;
  std::unordered_map<Purpose, Newest, PurposeHash> newest_;
  std::size_t most_ = 0;
};

Ledger& ledger() {
  static Ledger one;
  return one;
}

struct Plan {
  std::uint64_t sends = 100'000;
  std::uint32_t peers = 1000;
  std::uint64_t seed = 1;
  std::string own = "127.0.0.1";
  std::string away = "127.1.0.0";
};

struct Tally {
  std::uint64_t sent = 0;
  std::uint64_t to_own = 0;
  std::uint64_t arrived = 0;
  std::uint64_t wrong = 0;        // datagrams for another peer than they were sent to
  std::uint64_t stale = 0;        // sends whose address handle was gone, led elsewhere or was superseded
  std::uint64_t refused = 0;      // askings that ended in an error
  std::uint64_t failed = 0;       // completions that were no success
  std::uint64_t generations = 0;  // tenants
  std::uint64_t created = 0;
  std::uint64_t reclaimed = 0;
  std::uint64_t replaced = 0;
};

[[noreturn]] void give_up(const char* what, const std::string& why) {
  std::fprintf(stderr, "directory_soak: %s: %s\n", what, why.c_str());
  std::exit(1);
}
void must(const Status& status, const char* what) {
  if (!status) give_up(what, status.error().message);
}
template <class T>
T must(Result<T> made, const char* what) {
  if (!made) give_up(what, made.error().message);
  return std::move(*made);
}

std::uint64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoull(line.substr(6));
  }
  return 0;
}

// Every other peer is this host by a path of its own.
Destination peer(const Plan& plan, std::uint32_t number) {
  Destination to;
  to.gid = *parse_gid(plan.own);
  to.flow_label = 1 + number;
  if (number % 2 == 0) return to;
  to.gid = *parse_gid(plan.away);
  to.gid.bytes[14] = static_cast<std::uint8_t>(number / 256);
  to.gid.bytes[15] = static_cast<std::uint8_t>(number % 256);
  return to;
}

// One tenant's life: a directory, a queue pair, and so many sends to peers drawn from the seed.
class Life {
 public:
  Life(const Context& context, const Plan& plan, std::uint64_t generation, Tally& tally)
      : plan_(plan),
        tally_(tally),
        chance_(plan.seed * 1'000'003 + generation),
        tenant_(must(Tenant::create(context, {.name = "generation " + std::to_string(generation)}), "tenant")),
        directory_(must(tenant_.directory(1), "directory")),
        lane_(must(Lane::open(context, tenant_.domain(), directory_), "queue pair")) {}

  void send(std::uint64_t count);
  void end();

 private:
  void send_to(std::uint32_t number);
  ibv_ah* address_of(std::uint32_t number, const Destination& to);
  void take();

  const Plan& plan_;
  Tally& tally_;
  std::mt19937_64 chance_;
  Tenant tenant_;
  AhDirectory directory_;
  std::unique_ptr<Lane> lane_;
  std::unordered_map<std::uint32_t, AhHandle> held_;
  std::uint64_t to_own_ = 0;
  std::uint64_t arrived_ = 0;
};

void Life::take() {
  must(lane_->poll_sends(), "completions");
  must(lane_->receive([this](std::span<const std::byte> payload, auto, const ibv_wc&) {
    std::uint32_t number = 0;
    if (payload.size() == sizeof number) std::memcpy(&number, payload.data(), sizeof number);
    ++(payload.size() == sizeof number && number < plan_.peers && number % 2 == 0 ? arrived_ : tally_.wrong);
  }),
       "receive");
}

ibv_ah* Life::address_of(std::uint32_t number, const Destination& to) {
  if (ibv_ah* ready = lane_->sender().next(to); ready != nullptr) return ready;
  must(lane_->settle(Deadline::in(20s)), "completions");  // nobody else can make room of what is in flight here
  const Deadline deadline = Deadline::in(20s);
  while (!deadline.passed()) {
    auto handle = directory_.acquire(to, Deadline::in(5s));
    if (!handle) {
      ++tally_.refused;
      held_.clear();
      std::this_thread::sleep_for(1ms);
      continue;
    }
    ibv_ah* address = lane_->sender().next(*handle);
    if (chance_() % 8 == 0) held_[number] = std::move(*handle);
    if (address != nullptr) return address;
  }
  give_up("no address for a peer within twenty seconds", to_string(to.gid));
}

void Life::send_to(std::uint32_t number) {
  while (lane_->sender().outstanding() >= 64) take();
  const Destination to = peer(plan_, number);
  ibv_ah* address = address_of(number, to);
  if (!ledger().is_right(address, {tenant_.domain().get(), to.gid, to.flow_label})) ++tally_.stale;
  must(lane_->send(address, lane_->qpn(), std::as_bytes(std::span(&number, 1))), "send");
  ++tally_.sent;
  if (number % 2 == 0) ++to_own_;
}

// Most sends go to a few peers, which change; some to any.
void Life::send(std::uint64_t count) {
  constexpr std::uint32_t kFavourites = 64;
  std::uint32_t favourites = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % 4096 == 0) {
      favourites = static_cast<std::uint32_t>(chance_() % plan_.peers);
      held_.clear();
    }
    const std::uint64_t drawn = chance_();
    const auto near = static_cast<std::uint32_t>(drawn / 16 % kFavourites);
    const std::uint32_t number =
        drawn % 16 == 0 ? static_cast<std::uint32_t>(drawn / 16 % plan_.peers) : (favourites + near) % plan_.peers;
    send_to(number);
    if (i % 16 == 0) take();
  }
}

void Life::end() {
  must(lane_->settle(Deadline::in(20s)), "completions at the end");
  // Some may have been sent while the address was gone: then nothing more comes.
  Deadline quiet = Deadline::in(kQuiet);
  for (std::uint64_t before = arrived_; arrived_ < to_own_ && !quiet.passed(); before = arrived_) {
    take();
    if (arrived_ != before) quiet = Deadline::in(kQuiet);
  }
  held_.clear();
  tally_.to_own += to_own_;
  tally_.arrived += arrived_;
  const AhStats stats = directory_.stats();
  tally_.created += stats.created;
  tally_.replaced += stats.replaced;
  tally_.reclaimed += stats.reclaimed_pressure + stats.reclaimed_share + stats.reclaimed_idle;
  tally_.failed += lane_->failed();
  ++tally_.generations;
  lane_.reset();
  const TenantRelease released = tenant_.close(Deadline::in(10s));
  if (!released.complete()) give_up("a tenant that did not close", released.in_words());
}

Json report(const Plan& plan, const Tally& tally, std::uint64_t first_kib, std::uint64_t last_kib) {
  return {{"seed", plan.seed},
          {"sent", tally.sent},
          {"to_this_host", tally.to_own},
          {"arrived", tally.arrived},
          {"wrong", tally.wrong},
          {"stale", tally.stale},
          {"refused", tally.refused},
          {"failed", tally.failed},
          {"tenants", tally.generations},
          {"created", tally.created},
          {"replaced", tally.replaced},
          {"reclaimed", tally.reclaimed},
          {"alive", ledger().alive()},
          {"most_alive", ledger().most()},
          {"first_kib", first_kib},
          {"last_kib", last_kib}};
}

int run(const Plan& plan, bool wait) {
  Context context = must(Context::open_first_usable(), "device");
  std::cout << "running" << std::endl;
  constexpr std::uint64_t kLives = 40;
  Tally tally;
  std::uint64_t first_kib = 0;
  const auto begin = std::chrono::steady_clock::now();
  // Two tenants at a time, of different ages: each takes from the other what it needs.
  std::unique_ptr<Life> elder;
  for (std::uint64_t generation = 0; generation < kLives; ++generation) {
    auto life = std::make_unique<Life>(context, plan, generation, tally);
    const std::uint64_t count = plan.sends / kLives;
    life->send(count / 2);
    if (elder) elder->send(count - count / 2);
    if (elder) elder->end();
    elder = std::move(life);
    if (generation == kLives / 4) first_kib = resident_kib();
    std::cout << "at " << tally.sent << ", " << resident_kib() << " KiB" << std::endl;
  }
  elder->send(plan.sends - tally.sent);
  elder->end();
  elder.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t last_kib = resident_kib();
  Json final = report(plan, tally, first_kib, last_kib);
  final["seconds"] = seconds;
  std::cout << "final " << final << std::endl;
  if (std::string line; wait) std::getline(std::cin, line);  // the device's own counts can be looked at meanwhile
  must(context.close(), "device");
  const bool good = tally.stale == 0 && tally.wrong == 0 && tally.failed == 0 && ledger().alive() == 0;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace verbena::e2e

// Seen before the library's own, by everything in this program.
extern "C" __attribute__((visibility("default"))) ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  static const auto next = reinterpret_cast<decltype(&ibv_create_ah)>(::dlsym(RTLD_NEXT, "ibv_create_ah"));
  ibv_ah* const address = next(pd, attributes);
  if (address != nullptr) verbena::e2e::ledger().made(address, pd, *attributes);
  return address;
}

extern "C" __attribute__((visibility("default"))) int ibv_destroy_ah(ibv_ah* address) {
  static const auto next = reinterpret_cast<decltype(&ibv_destroy_ah)>(::dlsym(RTLD_NEXT, "ibv_destroy_ah"));
  verbena::e2e::ledger().gone(address);
  return next(address);
}

int main(int argc, char** argv) {
  verbena::e2e::Plan plan;
  CLI::App app("Very many sends over very many peers, with churn");
  app.add_option("--sends", plan.sends, "Datagrams")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--peers", plan.peers, "Destinations")->check(CLI::Range(2, 60000))->capture_default_str();
  app.add_option("--seed", plan.seed, "Of everything that is drawn")->capture_default_str();
  app.add_option("--own", plan.own, "An IPv4 address of this host")->capture_default_str();
  bool wait = false;
  app.add_option("--away", plan.away, "A network of 65,536 addresses in which nobody listens")->capture_default_str();
  app.add_flag("--wait", wait, "For a line of input before the device is closed");
  CLI11_PARSE(app, argc, argv);
  return verbena::e2e::run(plan, wait);
}
