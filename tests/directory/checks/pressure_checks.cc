// Many peers, few handles, many askers.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "checks.h"
#include "end.h"

namespace verbena::on_device {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPeers = 1000;
constexpr std::size_t kHandles = 64;
// A datagram waits for nobody: so many may be on their way to the one who takes them.
constexpr std::uint64_t kUnderWay = 128;
constexpr auto kPatience = 60s;

// Every other peer is the far device by a path of its own, and receives; the rest are hosts behind it that are not
// there.
bool receives(std::uint32_t peer) {
  return peer % 2 == 0;
}
Destination peer_of(const World& world, std::uint32_t number) {
  Destination to = destination(receives(number) ? world.v4 : world.away, 1 + number);
  if (receives(number)) return to;
  to.gid.bytes[14] = static_cast<std::uint8_t>(number / 200);
  to.gid.bytes[15] = static_cast<std::uint8_t>(1 + number % 200);
  return to;
}

struct Tally {
  std::uint64_t sent = 0;
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t wrong = 0;
};

// Rounds over the peers in an order of their own, one datagram each; `window` sends at most are in flight.
class Rotation {
 public:
  Rotation(const World& world, AhDirectory& directory, Lane& lane, Lane& far)
      : world_(world), directory_(directory), lane_(lane), far_(far) {}

  void run(std::uint32_t begin, std::uint32_t count, std::uint64_t window);
  const Tally& tally() const { return tally_; }

 private:
  ibv_ah* address_of(std::uint32_t number);
  void take();
  void pause_until(const std::function<bool()>& condition, const char* what);

  const World& world_;
  AhDirectory& directory_;
  Lane& lane_;
  Lane& far_;
  AhHandle held_;
  Tally tally_;
};

void Rotation::take() {
  must(lane_.poll_sends(), "completions");
  must(far_.receive([this](std::span<const std::byte> payload, auto, const ibv_wc&) {
    std::uint32_t number = kPeers;
    if (payload.size() == sizeof number) std::memcpy(&number, payload.data(), sizeof number);
    ++(number < kPeers && receives(number) ? tally_.arrived : tally_.wrong);
  }),
       "receive");
}

void Rotation::pause_until(const std::function<bool()>& condition, const char* what) {
  for (const Deadline end = Deadline::in(kPatience); !condition(); take()) {
    if (end.passed()) throw Broken(std::string("waited in vain: ") + what);
  }
}

ibv_ah* Rotation::address_of(std::uint32_t number) {
  const Destination to = peer_of(world_, number);
  if (ibv_ah* ready = lane_.sender().next(to); ready != nullptr) return ready;
  // A full directory waits 200 ms for room and then says so; ours comes with our completions.
  for (const Deadline end = Deadline::in(kPatience);;) {
    auto handle = directory_.acquire(to, end);
    if (handle) held_ = std::move(*handle);
    if (handle) break;
    if (handle.error().code != ErrorCode::kExhausted || end.passed()) throw Broken(handle.error().message);
    take();
  }
  ibv_ah* address = lane_.sender().next(held_);
  if (address == nullptr) throw Broken("no address for a destination that was acquired");
  return address;
}

void Rotation::run(std::uint32_t begin, std::uint32_t count, std::uint64_t window) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = (begin + i * 7) % kPeers;
    pause_until([&] { return lane_.sender().outstanding() < window; }, "a completion");
    pause_until([&] { return tally_.expected - tally_.arrived < kUnderWay; }, "an arrival");
    ibv_ah* address = address_of(number);
    must(lane_.send(address, far_.qpn(), std::as_bytes(std::span(&number, 1))), "send");
    ++tally_.sent;
    if (receives(number)) ++tally_.expected;
    take();
  }
  held_ = {};
  pause_until([&] { return tally_.arrived == tally_.expected && lane_.sender().outstanding() == 0; }, "the last ones");
}

AhDirectoryOptions few_handles() {
  AhDirectoryOptions options;
  options.max_entries = kHandles;
  return options;
}

void expect_within_limit(const AhStats& stats, std::uint64_t violations, Findings& findings) {
  const std::size_t most = Ledger::of_this_process().take_most_alive();
  findings.note("handles made", stats.created);
  findings.note("reclaimed under pressure", stats.reclaimed_pressure);
  findings.note("most handles at once", most);
  findings.expect(most <= kHandles, "never more handles than allowed: " + std::to_string(most));
  findings.expect(stats.reclaimed_pressure >= kPeers - kHandles, "the limit was felt");
  findings.expect_equal<std::uint64_t>(Ledger::of_this_process().violations() - violations, 0,
                                       "handles destroyed while a send named them");
}

void rotation(const World& world, Findings& findings) {
  Ledger& ledger = Ledger::of_this_process();
  const std::uint64_t violations = ledger.violations();
  End far(world.far);
  ledger.take_most_alive();
  End near(world.near, few_handles());
  Rotation rounds(world, near.directory, *near.lane, *far.lane);
  for (std::uint32_t round = 0; round < world.rounds; ++round) rounds.run(round, kPeers, 32);
  findings.note("handles that the device has", must(world.near.query_device(), "device").max_ah);
  findings.note("sent", rounds.tally().sent);
  findings.note("arrived", rounds.tally().arrived);
  findings.expect_equal<std::uint64_t>(rounds.tally().sent, world.rounds * kPeers, "sends");
  findings.expect_equal<std::uint64_t>(rounds.tally().wrong, 0, "datagrams for somebody else");
  expect_within_limit(near.directory.stats(), violations, findings);
  near.close(findings);
  far.close(findings);
}

// Each with a queue pair and a receiver of its own, and one directory for all.
void rotation_of_four_threads(const World& world, Findings& findings) {
  Ledger& ledger = Ledger::of_this_process();
  const std::uint64_t violations = ledger.violations();
  constexpr std::size_t kThreads = 4;
  const auto share = static_cast<std::uint32_t>(kPeers / kThreads * world.rounds);
  End far(world.far);
  ledger.take_most_alive();
  End near(world.near, few_handles());
  std::vector<std::unique_ptr<Lane>> lanes, ends;
  std::array<std::string, kThreads> broken;
  std::array<Tally, kThreads> tallies;
  for (std::size_t i = 0; i < kThreads; ++i) {
    lanes.push_back(must(Lane::open(world.near, near.domain, near.directory, accounted()), "queue pair"));
    ends.push_back(must(Lane::open(world.far, far.domain, far.directory), "queue pair"));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        Rotation rounds(world, near.directory, *lanes[i], *ends[i]);
        rounds.run(static_cast<std::uint32_t>(kPeers / kThreads * i), share, 8);
        tallies[i] = rounds.tally();
      } catch (const std::exception& why) {
        broken[i] = why.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kThreads; ++i) {
    findings.expect(broken[i].empty(), broken[i]);
    findings.expect_equal<std::uint64_t>(tallies[i].sent, share, "sends");
    findings.expect_equal<std::uint64_t>(lanes[i]->failed(), 0, "sends that completed with an error");
  }
  expect_within_limit(near.directory.stats(), violations, findings);
  lanes.clear();
  ends.clear();
  near.close(findings);
  far.close(findings);
}

// At the start of a large job everybody asks for everybody.
void admission_of_ten_thousand(const World& world, Findings& findings) {
  constexpr std::uint32_t kAtOnce = 10'000;
  Ledger& ledger = Ledger::of_this_process();
  std::vector<Destination> all;
  for (std::uint32_t i = 0; i < kAtOnce; ++i) all.push_back(destination(world.v4, 1 + i));
  AhDirectoryOptions options;
  End near(world.near, options);
  ledger.take_most_creations();
  const std::uint64_t created = ledger.created();
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin);
  };
  findings.expect_equal<std::size_t>(near.directory.prewarm(all), kAtOnce, "asked for");
  findings.note("the call took ms", since().count());
  const bool ready = within(kPatience * 5, [&] { return near.directory.stats().ready == kAtOnce; });
  findings.note("all ready after ms", since().count());
  findings.expect(ready, "all are ready; of 10,000: " + std::to_string(near.directory.stats().ready));
  const std::size_t at_once = ledger.take_most_creations();
  findings.note("creations at once on the device", at_once);
  findings.expect(at_once <= options.creators, "no more creations at once than creators");
  findings.expect_equal<std::uint64_t>(ledger.created() - created, kAtOnce, "creations");
  findings.expect_equal<std::uint64_t>(near.directory.stats().failed, 0, "failures");
  for (const Destination& to : all) {
    if (near.lane->sender().next(to) != nullptr) continue;
    findings.expect(false, "the data path finds each");
    break;
  }
  near.lane->sender().retract(near.lane->sender().outstanding());
  near.close(findings);
}

constexpr std::array kChecks{
    Check{"a_thousand_peers_in_rotation_with_room_for_64", rotation},
    Check{"four_threads_in_rotation_share_64_handles", rotation_of_four_threads},
    Check{"ten_thousand_destinations_at_once_are_admitted_a_few_at_a_time", admission_of_ten_thousand},
};

}  // namespace

std::span<const Check> pressure_checks() {
  return kChecks;
}

}  // namespace verbena::on_device
