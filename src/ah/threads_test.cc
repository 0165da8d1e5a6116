// Everything at once, for the sanitizers: senders, pressure, events, handles and leases dropped anywhere.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Threads = AhWorld;

constexpr std::uint32_t kSeed = 20240607;
constexpr std::uint32_t kPeers = 200;
constexpr std::uint32_t kSends = 800;
constexpr std::uint64_t kWindow = 8;

Destination random_peer(std::mt19937& random) {
  return to(static_cast<std::uint32_t>(2 + random() % kPeers));
}

struct Tally {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<bool> done{false};

  // Lets the senders go on by `count`; false where they have ended.
  bool wait_for(std::uint64_t count) const {
    const std::uint64_t begin = sent + refused;
    while (!done && sent + refused < begin + count) std::this_thread::yield();
    return !done;
  }
};

// Sends to random peers, with a window of work in flight.
void send_at_random(AhDirectory& directory, QueuePair& pair, std::uint32_t seed, Tally& tally) {
  std::mt19937 random(seed);
  AhSender sender = std::move(*directory.make_sender());
  for (std::uint32_t i = 0; i < kSends; ++i) {
    const Destination destination = random_peer(random);
    ibv_ah* address = sender.next(destination);
    if (address == nullptr) {
      // Who waits takes completions first: on a full device the addresses that are in flight make the room.
      sender.completed(complete_sends(pair.get(), kWindow));
      const Result<AhHandle> handle = directory.acquire(destination, soon());
      if (handle) address = sender.next(*handle);
      EXPECT_TRUE(handle || handle.error().code != ErrorCode::kTimedOut) << handle.error().message;
    }
    if (address == nullptr) {
      ++tally.refused;
      continue;
    }
    ibv_sge nothing{};
    if (pair.post_send({.address = address, .qpn = 1, .qkey = 1}, nothing, sender.position(), 0)) {
      ++tally.sent;
    } else {
      ADD_FAILURE() << "a post was refused, seed " << kSeed;
      sender.retract(1);
    }
    if (random() % 4 == 0 && sender.next(destination) != nullptr) sender.retract(1);  // it stays named
    if (sender.outstanding() == kWindow) sender.completed(complete_sends(pair.get(), 1 + random() % kWindow));
  }
  sender.completed(complete_sends(pair.get(), kWindow));
  EXPECT_EQ(sender.outstanding(), 0U);
}

TEST_F(Threads, SendersUnderPressureAndEventsNeverNameADestroyedAddress) {
  set_max_ah("fake0", 96);
  AhDirectory directory = make_directory();
  std::vector<QueuePair> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(make_pair());
  Tally tally;
  std::thread weather([&] {
    std::mt19937 random(kSeed);
    while (tally.wait_for(40)) {
      std::vector<GidPlace> gids = usual_gids();
      gids.insert(gids.begin(), random() % 3, GidPlace{});
      set_gids("fake0", 1, gids);
      raise_event("fake0", IBV_EVENT_GID_CHANGE);
      directory.on_network_change(
          {.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = random_peer(random).gid});
      const AhStats stats = directory.stats();
      EXPECT_LE(stats.live, 96U);
      EXPECT_LE(directory.rows().size(), std::size_t{2000});
    }
  });
  std::thread holders([&] {
    std::mt19937 random(kSeed + 1);
    std::vector<AhHandle> held;
    std::vector<AhLease> leases;
    while (tally.wait_for(4)) {
      const Result<AhHandle> handle = directory.acquire(random_peer(random), Deadline::at({}));
      if (handle && held.size() < 4) held.push_back(*handle);
      if (handle && leases.size() < 4) {
        if (Result<AhLease> lease = handle->lease()) leases.push_back(std::move(*lease));
      }
      if (random() % 4 == 0) held.clear();
      if (random() % 4 == 0) leases.clear();
    }
  });
  std::vector<std::thread> senders;
  for (std::uint32_t i = 0; i < 4; ++i) {
    senders.emplace_back([&, i] { send_at_random(directory, pairs[i], kSeed + 100 + i, tally); });
  }
  for (std::thread& sender : senders) sender.join();
  tally.done = true;
  weather.join();
  holders.join();
  EXPECT_EQ(violations().sum(), 0U) << "seed " << kSeed;
  EXPECT_GT(tally.sent, 4 * kSends / 2) << "seed " << kSeed;
  EXPECT_TRUE(directory.close(soon()).empty());
  EXPECT_EQ(live().addresses, 0U);
  const AhStats stats = directory.stats();
  EXPECT_EQ(stats.created, stats.destroyed);
  EXPECT_EQ(stats.misused, 0U);
}

TEST_F(Threads, ATableThatGrowsLosesNobodyWhoReads) {
  AhDirectory directory = make_directory();
  const AhHandle known = *directory.acquire(to(2), soon());
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      AhSender sender = std::move(*directory.make_sender());
      while (!done) {
        if (sender.next(to(2)) == nullptr) ADD_FAILURE() << "lost";
        sender.completed(1);
      }
    });
  }
  for (std::uint32_t i = 3; i < 3000; ++i) ASSERT_TRUE(directory.acquire(to(i), soon()));
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(Threads, CloseRacesWithEverybody) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    AhDirectory directory = make_directory();
    std::atomic<bool> done{false};
    std::vector<std::thread> askers;
    for (std::uint32_t thread = 0; thread < 3; ++thread) {
      askers.emplace_back([&, thread] {
        for (std::uint32_t i = 0; !done; ++i) {
          const Result<AhHandle> handle = directory.acquire(to(2 + (i * 3 + thread) % 100), soon());
          if (!handle) {
            EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable);
            return;
          }
        }
      });
    }
    while (directory.stats().created < 10 + round) std::this_thread::yield();
    const AhLeftover left = directory.close(soon());
    EXPECT_TRUE(left.rows.empty());
    done = true;
    for (std::thread& asker : askers) asker.join();
  }
  EXPECT_EQ(live().addresses, 0U);
}

}  // namespace
}  // namespace verbena::fake
