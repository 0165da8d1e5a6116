#include "verbena/network_watcher.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <namespaces/own_namespace.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "verbena/deadline.h"

namespace verbena {
namespace {

using Kind = NetworkChange::Kind;
using testing::add_wire;
using testing::in_own_namespace;
using testing::ip;

constexpr auto kPatience = std::chrono::seconds(20);  // far beyond what it takes: reaching it is the failure

// What the watcher delivers, from its making.
class Changes {
 public:
  Changes() : watcher_(*NetworkWatcher::of_this_namespace()) {
    ticket_ = watcher_->subscribe([this](const NetworkChange& change) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(change);
      more_.notify_all();
    });
  }
  ~Changes() { watcher_->unsubscribe(ticket_); }

  // The first that fits, of those that came since the last one found; nothing where none ever does.
  template <class Fits>
  std::optional<NetworkChange> next(Fits fits) {
    std::unique_lock lock(mutex_);
    const Deadline deadline = Deadline::in(kPatience);
    for (;;) {
      while (at_ < seen_.size()) {
        if (fits(seen_[at_++])) return seen_[at_ - 1];
      }
      if (more_.wait_until(lock, deadline.when()) == std::cv_status::timeout) return std::nullopt;
    }
  }
  std::optional<NetworkChange> next(Kind kind, const char* address = nullptr, bool removed = false) {
    return next([&](const NetworkChange& change) {
      if (change.kind != kind || change.removed != removed) return false;
      return address == nullptr || (change.address && *change.address == *parse_gid(address));
    });
  }
  std::vector<NetworkChange> all() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::shared_ptr<NetworkWatcher> watcher_;
  NetworkWatcher::Ticket ticket_ = 0;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<NetworkChange> seen_;  // guarded by mutex_
  std::size_t at_ = 0;               // guarded by mutex_
};

TEST(NetworkWatcher, TellsAddresses) {
  in_own_namespace([] {
    add_wire();
    const std::uint32_t one = if_nametoindex("one");
    Changes changes;
    for (const char* address : {"10.9.0.7", "fd09::7"}) {
      const std::string words = std::string(address) + (address[0] == 'f' ? "/64" : "/24") + " dev one";
      ip("address add " + words);
      const auto added = changes.next(Kind::kAddress, address);
      ASSERT_TRUE(added);
      EXPECT_EQ(added->netdev, one);
      EXPECT_EQ(added->prefix_length, 128);
      EXPECT_FALSE(added->mac);
      ip("address del " + words);
      const auto removed = changes.next(Kind::kAddress, address, true);
      ASSERT_TRUE(removed);
      EXPECT_EQ(removed->netdev, one);
    }
  });
}

TEST(NetworkWatcher, TellsThisEndOfAPointToPointAddress) {
  in_own_namespace([] {
    add_wire();
    Changes changes;
    ip("address add 10.8.0.1 peer 10.8.0.2 dev one");
    EXPECT_TRUE(changes.next(Kind::kAddress, "10.8.0.1"));
  });
}

TEST(NetworkWatcher, TellsNeighboursAndTheirMacAddresses) {
  in_own_namespace([] {
    add_wire();
    const std::uint32_t one = if_nametoindex("one");
    for (const char* address : {"10.9.0.2", "fd09::2"}) {
      Changes changes;
      const std::string neighbour = std::string("neigh replace ") + address + " dev one ";
      ip(neighbour + "lladdr 02:00:00:00:00:01");
      auto change = changes.next(Kind::kNeighbour, address);
      ASSERT_TRUE(change);
      EXPECT_EQ(change->netdev, one);
      EXPECT_EQ(change->mac, (MacAddress{2, 0, 0, 0, 0, 1}));
      ip(neighbour + "lladdr 02:00:00:00:00:09");
      change = changes.next(Kind::kNeighbour, address);
      ASSERT_TRUE(change);
      EXPECT_EQ(change->mac, (MacAddress{2, 0, 0, 0, 0, 9}));
      ip(neighbour + "lladdr 02:00:00:00:00:09 nud stale");  // not new, and delivered
      change = changes.next(Kind::kNeighbour, address);
      ASSERT_TRUE(change);
      EXPECT_EQ(change->mac, (MacAddress{2, 0, 0, 0, 0, 9}));
      ip(neighbour + "nud failed");
      change = changes.next(Kind::kNeighbour, address);
      ASSERT_TRUE(change);
      EXPECT_FALSE(change->mac);
      ip(std::string("neigh del ") + address + " dev one");
      change = changes.next(Kind::kNeighbour, address, true);
      ASSERT_TRUE(change);
      EXPECT_FALSE(change->mac);
    }
  });
}

// Nobody at the other end: the kernel asks in vain, and says so.
TEST(NetworkWatcher, TellsANeighbourThatDoesNotAnswer) {
  in_own_namespace([] {
    add_wire();
    std::ofstream("/proc/sys/net/ipv4/neigh/one/retrans_time_ms") << 10;
    Changes changes;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    to.sin_addr.s_addr = htonl(0x0a090003);
    sockaddr address{};
    static_assert(sizeof to == sizeof address);
    std::memcpy(&address, &to, sizeof to);
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::sendto(fd, "", 0, 0, &address, sizeof to), 0);
    ::close(fd);
    const auto change = changes.next(Kind::kNeighbour, "10.9.0.3");
    ASSERT_TRUE(change);
    EXPECT_FALSE(change->mac);
  });
}

TEST(NetworkWatcher, TellsLinks) {
  in_own_namespace([] {
    add_wire();
    const std::uint32_t one = if_nametoindex("one");
    Changes changes;
    const auto told = [&](const std::string& words) {
      ip(words);
      const auto change =
          changes.next([&](const NetworkChange& c) { return c.kind == Kind::kLink && c.netdev == one; });
      ASSERT_TRUE(change) << words;
      EXPECT_FALSE(change->removed) << words;
      EXPECT_FALSE(change->address) << words;
    };
    told("link set one mtu 1400");
    told("link set one down");
    told("link set one name uno");
    told("link set uno up");
    ip("link set uno address 02:00:00:00:00:55");
    EXPECT_TRUE(changes.next([&](const NetworkChange& c) {
      return c.kind == Kind::kLink && c.netdev == one && c.mac == MacAddress{2, 0, 0, 0, 0, 0x55};
    }));
    ip("link del uno");
    EXPECT_TRUE(
        changes.next([&](const NetworkChange& c) { return c.kind == Kind::kLink && c.netdev == one && c.removed; }));
  });
}

TEST(NetworkWatcher, TellsRoutes) {
  in_own_namespace([] {
    add_wire();
    struct Case {
      const char* family;
      const char* words;
      const char* address;
      std::uint8_t prefix_length;
    };
    for (const Case& c :
         {Case{"-4", "10.20.0.0/16 via 10.9.0.2", "10.20.0.0", 112}, Case{"-4", "10.30.0.5 dev one", "10.30.0.5", 128},
          Case{"-4", "default via 10.9.0.2", "0.0.0.0", 96}, Case{"-4", "blackhole 10.40.0.0/24", "10.40.0.0", 120},
          Case{"-4", "10.50.0.0/24 nexthop via 10.9.0.2 nexthop via 10.9.0.3", "10.50.0.0", 120},
          Case{"-6", "fd20::/64 via fd09::2", "fd20::", 64}, Case{"-6", "default via fd09::2", "::", 0}}) {
      Changes changes;
      ip(std::string(c.family) + " route add " + c.words);
      ip(std::string(c.family) + " route del " + c.words);
      for (const bool removed : {false, true}) {
        const auto change = changes.next(Kind::kRoute, c.address, removed);
        ASSERT_TRUE(change) << c.words << (removed ? " removed" : " added");
        EXPECT_EQ(change->prefix_length, c.prefix_length) << c.words;
        EXPECT_EQ(change->netdev, 0U) << c.words;
      }
    }
  });
}

TEST(NetworkWatcher, TellsRulesAndNextHopsAsARouteToAnything) {
  in_own_namespace([] {
    add_wire();
    for (const char* words :
         {"rule %s from 10.9.0.1 table 100", "-6 rule %s from fd09::1 table 100", "nexthop %s id 7"}) {
      for (const bool removed : {false, true}) {
        Changes changes;
        std::string command = words;
        command.replace(command.find("%s"), 2, removed ? "del" : "add");
        if (command == "nexthop add id 7") command += " via 10.9.0.2 dev one";
        ip(command);
        // The interfaces may still be telling routes of their own.
        auto change = changes.next(Kind::kRoute, nullptr, removed);
        while (change && change->address) change = changes.next(Kind::kRoute, nullptr, removed);
        ASSERT_TRUE(change) << command;
      }
    }
  });
}

// An interface that comes up brings a multicast route and neighbours of groups with it.
TEST(NetworkWatcher, KeepsQuietAboutGroups) {
  in_own_namespace([] {
    Changes changes;
    add_wire();
    ip("-6 route add multicast ff3e::/16 dev one table 200");
    ip("route add 10.77.7.0/24 dev one");
    ASSERT_TRUE(changes.next(Kind::kRoute, "10.77.7.0"));
    for (const NetworkChange& change : changes.all()) {
      EXPECT_FALSE(change.address && change.address->is_multicast()) << to_string(*change.address);
      EXPECT_FALSE(change.address && *change.address == *parse_gid("10.9.0.255")) << "a broadcast route";
    }
  });
}

TEST(NetworkWatcher, TellsOnceThatNoticesWereLost) {
  in_own_namespace([] {
    add_wire();
    const auto watcher = *NetworkWatcher::of_this_namespace();
    std::promise<void> first;
    std::promise<void> go_on;
    std::promise<void> lost;
    int delivered = 0;
    bool told = false;  // of the subscriber's thread
    const auto ticket = watcher->subscribe([&](const NetworkChange& change) {
      if (told) return;  // what still drips in behind it is of no concern here
      if (++delivered == 1) {
        first.set_value();
        go_on.get_future().wait();
      }
      if (change.kind != Kind::kLost) return;
      told = true;
      lost.set_value();
    });
    ip("route add 10.77.7.0/24 dev one");
    first.get_future().wait();
    constexpr int kFlood = 30000;  // more than any receive buffer holds
    const std::string file = ::testing::TempDir() + "verbena_flood_" + std::to_string(::getpid());
    {
      std::ofstream batch(file);
      for (int i = 0; i < kFlood; ++i)
        batch << "route add 10." << 100 + i / 65536 << '.' << i / 256 % 256 << '.' << i % 256 << " dev one\n";
    }
    ip("-batch " + file);
    std::remove(file.c_str());
    go_on.set_value();
    ASSERT_EQ(lost.get_future().wait_for(kPatience), std::future_status::ready);
    watcher->unsubscribe(ticket);
    EXPECT_EQ(delivered, 2) << "the one before, and kLost for the rest";
    Changes after;
    ip("route add 10.66.0.0/16 dev one");
    EXPECT_TRUE(after.next(Kind::kRoute, "10.66.0.0")) << "it goes on";
  });
}

TEST(NetworkWatcher, UnsubscribeWaitsForTheSubscriber) {
  in_own_namespace([] {
    add_wire();
    const auto watcher = *NetworkWatcher::of_this_namespace();
    Changes other;
    for (int round = 0; round < 20; ++round) {
      auto alive = std::make_unique<int>(0);
      std::promise<void> running;
      const auto ticket = watcher->subscribe([&, here = alive.get(), told = false](const NetworkChange&) mutable {
        if (!std::exchange(told, true)) running.set_value();
        for (int i = 0; i < 1000; ++i) {
          ++*here;
          std::this_thread::yield();
        }
      });
      ip("address add 10.9.1." + std::to_string(round) + "/32 dev one");
      running.get_future().wait();
      watcher->unsubscribe(ticket);
      EXPECT_EQ(*alive % 1000, 0) << "it was still running";
      alive.reset();
      ip("address del 10.9.1." + std::to_string(round) + "/32 dev one");
      ASSERT_TRUE(other.next(Kind::kAddress, nullptr, true));
    }
  });
}

TEST(NetworkWatcher, ASubscriberMayUnsubscribeItself) {
  in_own_namespace([] {
    add_wire();
    const auto watcher = *NetworkWatcher::of_this_namespace();
    NetworkWatcher::Ticket ticket = 0;
    std::promise<void> subscribed;
    int calls = 0;
    std::shared_future<void> ready = subscribed.get_future().share();
    ticket = watcher->subscribe([&, ready](const NetworkChange&) {
      ready.wait();
      ++calls;
      watcher->unsubscribe(ticket);
    });
    subscribed.set_value();
    Changes other;
    ip("address add 10.9.2.1/32 dev one");
    ip("address add 10.9.2.2/32 dev one");
    ASSERT_TRUE(other.next(Kind::kAddress, "10.9.2.2"));
    watcher->unsubscribe(ticket);
    EXPECT_EQ(calls, 1);
  });
}

TEST(NetworkWatcher, IsOneForANamespaceAndEndsWithItsLastHolder) {
  in_own_namespace([] {
    auto first = *NetworkWatcher::of_this_namespace();
    EXPECT_EQ(first, *NetworkWatcher::of_this_namespace());
    std::shared_ptr<NetworkWatcher> elsewhere;
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) != 0) return;
      elsewhere = *NetworkWatcher::of_this_namespace();
      EXPECT_EQ(elsewhere, *NetworkWatcher::of_this_namespace());
    }).join();
    EXPECT_TRUE(elsewhere);
    EXPECT_NE(first, elsewhere);
    const std::weak_ptr<NetworkWatcher> gone = first;
    first.reset();
    EXPECT_TRUE(gone.expired());
    add_wire();
    Changes changes;
    ip("address add 10.9.2.1/32 dev one");
    EXPECT_TRUE(changes.next(Kind::kAddress, "10.9.2.1"));
  });
}

TEST(NetworkWatcher, AChildOfForkHasOneOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer ends a child of fork that starts a thread";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "AddressSanitizer's allocator may be locked by the other thread at the fork, and stays so in the child";
#endif
  in_own_namespace([] {
    add_wire();
    auto inherited = *NetworkWatcher::of_this_namespace();
    const pid_t child = ::fork();
    if (child == 0) {
      {
        Changes changes;
        ip("address add 10.9.2.1/32 dev one");
        EXPECT_TRUE(changes.next(Kind::kAddress, "10.9.2.1"));
        inherited.reset();
      }
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace verbena
