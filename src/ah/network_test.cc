// What the network says, fed by hand: which addresses it touches, and that traffic recovers of itself.
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Kind = NetworkChange::Kind;

constexpr MacAddress kMac{2, 0, 0, 0, 0, 1};
constexpr MacAddress kOtherMac{2, 0, 0, 0, 0, 2};

// A kernel whose routes and neighbours a test decides.
struct Kernel {
  std::mutex mutex;
  std::map<Gid, MacAddress> macs;        // guarded by mutex, as all
  std::map<Gid, Gid> gateways;           // destination to gateway
  std::map<Gid, Gid> sources;            // destination to the address to send from
  std::map<Gid, std::uint32_t> netdevs;  // destination to interface, where it is not the usual one
  bool has_routes = true;
  std::uint64_t look_ups = 0;

  Result<Route> route(const Gid& destination) {
    const std::lock_guard lock(mutex);
    ++look_ups;
    if (!has_routes) return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
    Route route = *usual_route(destination, 0);
    if (const auto at = gateways.find(destination); at != gateways.end()) route.gateway = at->second;
    if (const auto at = sources.find(destination); at != sources.end()) route.source = at->second;
    if (const auto at = netdevs.find(destination); at != netdevs.end()) route.netdev = at->second;
    return route;
  }
  std::optional<MacAddress> mac(const Gid& hop) {
    const std::lock_guard lock(mutex);
    const auto at = macs.find(hop);
    return at != macs.end() ? std::optional(at->second) : std::nullopt;
  }
  void set_mac(const Gid& hop, const MacAddress& mac) {
    const std::lock_guard lock(mutex);
    macs[hop] = mac;
  }
  void move(const Gid& destination, std::uint32_t netdev, const Gid& source) {
    const std::lock_guard lock(mutex);
    netdevs[destination] = netdev;
    sources[destination] = source;
  }
  std::uint64_t routes_asked() {
    const std::lock_guard lock(mutex);
    return look_ups;
  }
};

class Network : public AhWorld {
 protected:
  AhDirectoryOptions fed() {
    AhDirectoryOptions options = AhWorld::options();
    options.watch_async_events = false;
    options.routes = [this](const Gid& destination, std::uint32_t) { return kernel.route(destination); };
    options.neighbours = [this](const Gid& hop, std::uint32_t) -> Result<std::optional<MacAddress>> {
      return kernel.mac(hop);
    };
    return options;
  }

  static NetworkChange neighbour(const Gid& address, std::optional<MacAddress> mac, bool removed = false) {
    return {.kind = Kind::kNeighbour, .netdev = kNetdev, .address = address, .removed = removed, .mac = mac};
  }

  static NetworkChange route(const Gid& prefix, std::uint8_t length) {
    return {.kind = Kind::kRoute, .netdev = 0, .address = prefix, .prefix_length = length};
  }

  // Interfaces that the port has no GID on, as with each container of the host.
  static void come_and_go(AhDirectory& directory) {
    for (std::uint32_t netdev = 100; netdev < 200; ++netdev) {
      directory.on_network_change({.kind = Kind::kLink, .netdev = netdev, .mac = kMac});
      directory.on_network_change({.kind = Kind::kAddress, .netdev = netdev, .address = ipv4(99)});
      directory.on_network_change({.kind = Kind::kLink, .netdev = netdev, .removed = true});
    }
  }

  // Nothing is under way, and nothing that was under way has touched an address.
  static bool is_quiet(const AhDirectory& directory) {
    const AhStats stats = directory.stats();
    return stats.pending == 0 && stats.refreshing == 0 && stats.retired == 0;
  }

  Kernel kernel;
};

TEST_F(Network, ANeighbourThatIsVerifiedAgainTouchesNothing) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectory directory = make_directory(fed());
  const AhHandle handle = *directory.acquire(to(2), soon());
  const std::uint64_t asked = kernel.routes_asked();
  for (int i = 0; i < 1000; ++i) directory.on_network_change(neighbour(ipv4(2), kMac));
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().stale, 0U);
  EXPECT_EQ(creations(), 2U);
  EXPECT_EQ(kernel.routes_asked(), asked + 1);
}

TEST_F(Network, AMacThatMovedIsFollowedAndNobodyElseIsTouched) {
  kernel.set_mac(ipv4(2), kMac);
  kernel.set_mac(ipv4(3), kMac);
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  ibv_ah* before = sender.next(a);
  ibv_ah* of_b = sender.next(b);
  kernel.set_mac(ipv4(2), kOtherMac);
  directory.on_network_change(neighbour(ipv4(2), kOtherMac));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_FALSE(is_destroyed(before));  // in flight
  EXPECT_NE(sender.next(a), before);
  EXPECT_EQ(sender.next(b), of_b);
  sender.drained();
  EXPECT_TRUE(eventually([&] { return is_destroyed(before); }));
  EXPECT_EQ(directory.stats().stale_neighbour, 1U);
  directory.on_network_change(neighbour(ipv4(2), kOtherMac));  // known by now
  EXPECT_TRUE(directory.acquire(to(4), soon()));
  EXPECT_EQ(directory.stats().stale, 1U);
}

TEST_F(Network, ANeighbourThatShowsUpElsewhereIsFollowedWhereTheRouteIs) {
  constexpr std::uint32_t kOtherNetdev = kNetdev + 1;
  std::vector<GidPlace> gids = usual_gids();
  gids.push_back({ipv4(0x101), IBV_GID_TYPE_ROCE_V2, kOtherNetdev});  // 10.0.1.1, as of a VLAN on the same port
  set_gids("fake0", 1, gids);
  kernel.set_mac(ipv4(2), kMac);
  kernel.set_mac(ipv4(3), kMac);
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  ibv_ah* before = sender.next(a);
  ibv_ah* of_b = sender.next(b);
  NetworkChange elsewhere = neighbour(ipv4(2), kMac);
  elsewhere.netdev = kOtherNetdev;
  directory.on_network_change(elsewhere);  // the route has not moved: looked at, and left as it is
  ASSERT_TRUE(eventually([&] { return directory.stats().rechecked == 1; }));
  EXPECT_EQ(sender.next(a), before);
  kernel.move(ipv4(2), kOtherNetdev, ipv4(0x101));
  directory.on_network_change(elsewhere);
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(directory.effective(a)->source.gid, ipv4(0x101));
  EXPECT_NE(sender.next(a), before);
  EXPECT_EQ(sender.next(b), of_b) << "nobody else is touched";
  EXPECT_EQ(creations(), 3U);
  kernel.move(ipv4(2), kNetdev, ipv4(1));
  elsewhere.netdev = kNetdev;
  directory.on_network_change(elsewhere);
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 2; }));
  EXPECT_EQ(directory.effective(a)->source.gid, ipv4(1));
  sender.drained();
}

TEST_F(Network, AGatewaysMacConcernsAllThatGoThroughIt) {
  for (std::uint32_t peer = 2; peer < 6; ++peer) kernel.gateways[ipv4(peer)] = ipv4(254);
  kernel.set_mac(ipv4(254), kMac);
  AhDirectory directory = make_directory(fed());
  std::vector<AhHandle> handles;
  for (std::uint32_t peer = 2; peer < 10; ++peer) handles.push_back(*directory.acquire(to(peer), soon()));
  directory.on_network_change(neighbour(ipv4(2), kOtherMac));  // no next hop of anybody
  kernel.set_mac(ipv4(254), kOtherMac);
  directory.on_network_change(neighbour(ipv4(254), kOtherMac));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 4; }));
  EXPECT_EQ(creations(), 12U);
  EXPECT_EQ(directory.stats().stale, 4U);
}

TEST_F(Network, ANeighbourThatFailedIsMadeAnewOnceAndServesUntilItAnswers) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* before = sender.next(handle);
  set_create_hook([](const ibv_ah_attr&) { return ETIMEDOUT; });
  directory.on_network_change(neighbour(ipv4(2), std::nullopt));
  ASSERT_TRUE(eventually([&] { return directory.stats().failed == 1; }));
  // The attempt itself makes the kernel say so again: that is no news.
  directory.on_network_change(neighbour(ipv4(2), std::nullopt));
  EXPECT_TRUE(eventually([&] { return is_quiet(directory); }));
  EXPECT_EQ(attempts(), 2U);
  EXPECT_EQ(sender.next(handle), before);
  set_create_hook({});
  directory.on_network_change(neighbour(ipv4(2), kMac));  // it answers: no back-off is waited for
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  sender.drained();
}

TEST_F(Network, ANeighbourThatTheKernelForgotIsNotMadeAnewAtOnce) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectory directory = make_directory(fed());
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_network_change(neighbour(ipv4(2), std::nullopt, true));
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().stale, 0U);
}

TEST_F(Network, APeerThatFailedIsTriedWhenItsNeighbourAnswers) {
  AhDirectory directory = make_directory(fed());
  kernel.gateways[ipv4(3)] = ipv4(254);
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  set_create_hook({});
  EXPECT_FALSE(directory.acquire(to(2), soon()));  // remembered
  directory.on_network_change(neighbour(ipv4(2), kMac));
  EXPECT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  directory.on_network_change(neighbour(ipv4(254), kMac));
  EXPECT_TRUE(directory.acquire(to(3), soon()));
}

TEST_F(Network, AMacThatMovesWhileTheAddressIsMadeIsNoticed) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectory directory = make_directory(fed());
  set_create_hook([&](const ibv_ah_attr&) {
    if (attempts() == 1) {
      kernel.set_mac(ipv4(2), kOtherMac);
      directory.on_network_change(neighbour(ipv4(2), kOtherMac));
    }
    return 0;
  });
  const AhHandle handle = *directory.acquire(to(2), soon());
  EXPECT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(creations(), 2U);
}

TEST_F(Network, AskingForANeighbourIsNoReasonToDoubtIt) {
  AhDirectory directory = make_directory(fed());
  set_create_hook([&](const ibv_ah_attr&) {
    if (attempts() != 1) return 0;
    directory.on_network_change(neighbour(ipv4(2), std::nullopt));  // incomplete
    kernel.set_mac(ipv4(2), kMac);
    directory.on_network_change(neighbour(ipv4(2), kMac));
    return 0;
  });
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ASSERT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().stale, 0U);
  EXPECT_EQ(creations(), 2U);
}

TEST_F(Network, ARouteConcernsItsPrefixAndReplacesOnlyWhereTheChoiceDiffers) {
  set_gids("fake0", 1, {{ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}, {ipv4(9), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  AhDirectory directory = make_directory(fed());
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(300), soon());  // 10.0.1.44
  const std::uint64_t asked = kernel.routes_asked();
  directory.on_network_change(route(ipv4(0), 96 + 24));
  ASSERT_TRUE(eventually([&] { return directory.stats().rechecked == 1; }));
  EXPECT_EQ(kernel.routes_asked(), asked + 1);
  EXPECT_EQ(directory.stats().stale, 0U);
  kernel.sources[ipv4(2)] = ipv4(9);
  directory.on_network_change(route(ipv4(0), 96 + 24));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(directory.effective(a)->source.gid, ipv4(9));
  EXPECT_EQ(directory.stats().stale_route, 1U);
  EXPECT_EQ(creations(), 3U);
}

TEST_F(Network, AnotherGatewayIsAnotherAddressAlthoughItsAttributesAreTheSame) {
  AhDirectory directory = make_directory(fed());
  const AhHandle handle = *directory.acquire(to(2), soon());
  kernel.gateways[ipv4(2)] = ipv4(254);
  directory.on_network_change(route(ipv4(2), 128));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(directory.stats().stale_route, 1U);
}

TEST_F(Network, ARouteThatGoesAndComesBackIsSurvived) {
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.has_routes = false;
  }
  directory.on_network_change(route(ipv4(0), 96));
  ASSERT_TRUE(eventually([&] { return directory.stats().failed == 1; }));
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.has_routes = true;
  }
  directory.on_network_change(route(ipv4(0), 96));
  ASSERT_TRUE(eventually([&] { return directory.stats().rechecked >= 1; }));
  EXPECT_NE(sender.next(handle), nullptr);
  EXPECT_TRUE(eventually([&] { return directory.rows()[0].failures == 0; }));
  sender.drained();
}

TEST_F(Network, ARenamedInterfaceTouchesNothing) {
  AhDirectory directory = make_directory(fed());
  const AhHandle handle = *directory.acquire(to(2), soon());
  for (const std::uint64_t times : {1U, 2U}) {
    directory.on_network_change({.kind = Kind::kLink, .netdev = kNetdev, .mac = kMac});
    ASSERT_TRUE(eventually([&] { return directory.stats().rechecked == times; }));
  }
  EXPECT_EQ(directory.stats().stale, 0U);
  EXPECT_EQ(creations(), 1U);
}

TEST_F(Network, AnotherMacOfTheOwnInterfaceMakesAllOfItAnew) {
  AhDirectory directory = make_directory(fed());
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  directory.on_network_change({.kind = Kind::kLink, .netdev = kNetdev, .mac = kMac});
  ASSERT_TRUE(eventually([&] { return directory.stats().rechecked == 2; }));
  directory.on_network_change({.kind = Kind::kLink, .netdev = kNetdev + 1, .mac = kOtherMac});
  directory.on_network_change({.kind = Kind::kLink, .netdev = kNetdev, .mac = kOtherMac});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 2; }));
  EXPECT_EQ(directory.stats().stale_link, 2U);
}

TEST_F(Network, AnAddressThatFlapsIsFollowed) {
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  for (std::size_t round = 1; round <= 3; ++round) {
    set_gids("fake0", 1, {{link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
    directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1), .removed = true});
    ASSERT_TRUE(eventually([&] { return sender.next(handle) == nullptr; }));
    std::vector<GidPlace> gids(round + 3);
    gids.back() = {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev};
    set_gids("fake0", 1, gids);
    directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1)});
    ibv_ah* back = nullptr;
    ASSERT_TRUE(eventually([&] { return (back = sender.next(handle)) != nullptr; }));
    EXPECT_EQ(attributes_of(back).grh.sgid_index, round + 2);
  }
  sender.drained();
}

// A send with it would be lost: none goes out, however long replacements take and whatever the device still has.
TEST_F(Network, ASourceThatTheKernelRemovedServesNobodyFromThenOn) {
  AhDirectoryOptions distrustful = fed();
  distrustful.device_lag = std::chrono::hours(1);
  AhDirectory directory = make_directory(distrustful);
  AhSender sender = std::move(*directory.make_sender());
  std::vector<AhHandle> handles;
  for (std::uint32_t peer = 2; peer < 52; ++peer) handles.push_back(*directory.acquire(to(peer), soon()));
  Destination link_local_peer = to(2);
  link_local_peer.gid = link_local(2);
  link_local_peer.netdev = kNetdev;
  const AhHandle other = *directory.acquire(link_local_peer, soon());
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1), .removed = true});
  for (const AhHandle& handle : handles) EXPECT_EQ(sender.next(handle), nullptr);
  EXPECT_NE(sender.next(other), nullptr);
  ASSERT_TRUE(eventually([&] { return directory.stats().pending == 0; }));
  for (const AhHandle& handle : handles) EXPECT_EQ(sender.next(handle), nullptr);
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1)});
  for (const AhHandle& handle : handles) {
    EXPECT_TRUE(eventually([&] { return sender.next(handle) != nullptr; }));
  }
  sender.drained();
}

TEST_F(Network, ASourceThatTheKernelRemovedAndTheDeviceKeepsServesAgain) {
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1), .removed = true});
  EXPECT_TRUE(eventually([&] { return sender.next(handle) != nullptr; }));
  sender.drained();
}

// The same address with another prefix length: the kernel removes one of two.
TEST_F(Network, AnAddressThatIsStillThereIsStillTheSource) {
  AhDirectoryOptions still_there = fed();
  still_there.routes = [](const Gid& destination, std::uint32_t) -> Result<Route> {
    Route route = *usual_route(destination, 0);
    route.local = destination == ipv4(1);
    return route;
  };
  AhDirectory directory = make_directory(still_there);
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1), .removed = true});
  EXPECT_TRUE(eventually([&] { return sender.next(handle) != nullptr; }));
  ASSERT_TRUE(eventually([&] { return is_quiet(directory); }));
  EXPECT_EQ(directory.stats().failed, 0U);
  EXPECT_EQ(creations(), 2U);
  sender.drained();
}

// The device learns of an address from the same kernel, at its own pace; its event may be lost.
TEST_F(Network, ADeviceThatFollowsTheKernelLateIsLookedAtAgain) {
  AhDirectoryOptions lagging = fed();
  lagging.device_lag = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(lagging);
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_gids("fake0", 1, {{link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1), .removed = true});
  ASSERT_TRUE(eventually([&] { return sender.next(handle) == nullptr; }));
  ASSERT_TRUE(eventually([&] { return directory.stats().failed > 0 && directory.stats().pending == 0; }));
  // The look that follows the notice of the address finds it missing; only then does the device have it.
  std::atomic<bool> first{true};
  set_table_hook([&] {
    if (first.exchange(false)) set_gids("fake0", 1, usual_gids());
  });
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1)});
  EXPECT_TRUE(eventually([&] { return sender.next(handle) != nullptr; }));
  set_table_hook({});
  sender.drained();
}

TEST_F(Network, AMigratedMachineRecoversForSendersThatHoldNoHandle) {
  AhDirectory directory = make_directory(fed());
  AhSender sender = std::move(*directory.make_sender());
  for (std::uint32_t peer = 2; peer < 50; ++peer) ASSERT_TRUE(directory.acquire(to(peer), soon()));
  set_gids("fake0", 1, {});
  ibv_async_event event{};
  event.event_type = IBV_EVENT_GID_CHANGE;
  event.element.port_num = 1;
  directory.on_async_event(event);
  for (std::uint32_t peer = 2; peer < 50; ++peer) {
    ASSERT_TRUE(eventually([&] { return sender.next(to(peer)) == nullptr; }));
  }
  set_gids("fake0", 1, {{}, {}, {}, {}, {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_async_event(event);
  for (std::uint32_t peer = 2; peer < 50; ++peer) {
    ibv_ah* back = nullptr;
    ASSERT_TRUE(eventually([&] { return (back = sender.next(to(peer))) != nullptr; }));
    EXPECT_EQ(attributes_of(back).grh.sgid_index, 4);
  }
  sender.drained();
}

TEST_F(Network, LostNoticesMakeEverythingLookedAtAgain) {
  kernel.set_mac(ipv4(2), kMac);
  kernel.set_mac(ipv4(3), kMac);
  AhDirectory directory = make_directory(fed());
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  ibv_ah* of_b = b.lease()->get();
  kernel.set_mac(ipv4(2), kOtherMac);
  directory.on_network_change({.kind = Kind::kLost});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1 && directory.stats().rechecked >= 1; }));
  EXPECT_EQ(b.lease()->get(), of_b);
  EXPECT_EQ(creations(), 3U);
}

TEST_F(Network, LostNoticesWithoutNeighboursMakeAllAnew) {
  AhDirectoryOptions blind = fed();
  blind.neighbours = {};
  AhDirectory directory = make_directory(blind);
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  directory.on_network_change({.kind = Kind::kLost});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 2; }));
  EXPECT_EQ(directory.stats().stale_notices_lost, 2U);
}

TEST_F(Network, WhatIsOlderThanMaxAgeIsMadeAnew) {
  AhDirectoryOptions young = fed();
  young.max_age = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(young);
  const AhHandle handle = *directory.acquire(to(2), soon());
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced >= 3; }));
  EXPECT_GE(directory.stats().stale_age, 3U);
}

TEST_F(Network, TheFirstMacThatIsLearnedIsNoMove) {
  AhDirectory directory = make_directory(fed());  // a device that asks no neighbour: the kernel knows none yet
  const AhHandle handle = *directory.acquire(to(2), soon());
  kernel.set_mac(ipv4(2), kMac);
  directory.on_network_change(neighbour(ipv4(2), kMac));
  directory.on_network_change(route(ipv4(0), 96 + 8));
  ASSERT_TRUE(eventually([&] { return directory.stats().rechecked == 1 && is_quiet(directory); }));
  EXPECT_EQ(directory.stats().stale, 0U);
  EXPECT_EQ(creations(), 1U);
  kernel.set_mac(ipv4(2), kOtherMac);
  directory.on_network_change(neighbour(ipv4(2), kOtherMac));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(directory.stats().stale_neighbour, 1U);
}

TEST_F(Network, OtherInterfacesOfTheHostConcernNobody) {
  AhDirectoryOptions patient = fed();
  patient.device_lag = std::chrono::hours(1);
  AhDirectory directory = make_directory(patient);
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(4), soon()));
  set_create_hook({});
  const std::uint64_t asked = kernel.routes_asked();
  const std::uint64_t reads = table_reads();
  come_and_go(directory);
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(table_reads(), reads);
  EXPECT_EQ(kernel.routes_asked(), asked + 1);
  EXPECT_EQ(directory.stats().failed, 1U);
  EXPECT_EQ(directory.stats().stale, 0U);
}

// It says that none of them has to do with the port.
TEST_F(Network, OfOtherInterfacesTheTableIsLookedAt) {
  AhDirectoryOptions prompt = fed();
  prompt.device_lag = std::chrono::nanoseconds(0);
  AhDirectory directory = make_directory(prompt);
  const AhHandle handle = *directory.acquire(to(2), soon());
  const std::uint64_t asked = kernel.routes_asked();
  const std::uint64_t reads = table_reads();
  come_and_go(directory);
  EXPECT_TRUE(eventually([&] { return table_reads() > reads && is_quiet(directory); }));
  EXPECT_EQ(kernel.routes_asked(), asked);
  EXPECT_EQ(directory.stats().stale, 0U);
}

// Such as a VLAN on the port: the device has a GID for its address, and the event that says so may be lost.
TEST_F(Network, AGidOnAnInterfaceThatThePortHadNoneOnIsNoticedWithoutAnEvent) {
  constexpr std::uint32_t kVlan = kNetdev + 1;
  AhDirectoryOptions with_vlan = fed();
  with_vlan.routes = [](const Gid&, std::uint32_t netdev) -> Result<Route> {
    return Route{.netdev = netdev, .source = {}, .gateway = {}, .local = false, .mtu = 0};
  };
  AhDirectory directory = make_directory(with_vlan);
  Destination by_vlan = to(2);
  by_vlan.netdev = kVlan;
  EXPECT_FALSE(directory.acquire(by_vlan, soon()));
  std::vector<GidPlace> gids = usual_gids();
  gids.push_back({ipv4(9), IBV_GID_TYPE_ROCE_V2, kVlan});
  set_gids("fake0", 1, gids);
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kVlan, .address = ipv4(9)});
  Result<AhHandle> handle = failure(ErrorCode::kUnavailable, "not asked");
  ASSERT_TRUE(eventually([&] { return (handle = directory.acquire(by_vlan, soon())).has_value(); }));
  EXPECT_EQ(directory.effective(*handle)->source.gid, ipv4(9));
}

TEST_F(Network, WhatIsIdleIsGivenBackAlthoughItIsMadeAnewOftener) {
  AhDirectoryOptions young = fed();
  young.max_age = std::chrono::milliseconds(20);
  young.idle_age = std::chrono::milliseconds(200);
  AhDirectory directory = make_directory(young);
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_TRUE(eventually([&] { return directory.stats().reclaimed_idle == 1; }));
  EXPECT_TRUE(eventually([&] { return live().addresses == 0; }));
}

TEST_F(Network, ASubscriberLearnsWhatHappened) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectory directory = make_directory(fed());
  std::mutex mutex;
  std::vector<AhEvent> heard;
  const AhDirectory::Subscription subscription = *directory.subscribe([&](const AhEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event);
  });
  const auto has_heard = [&](std::vector<AhEvent::Kind> kinds) {
    return eventually([&] {
             const std::lock_guard lock(mutex);
             return heard.size() >= kinds.size();
           }) &&
           [&] {
             const std::lock_guard lock(mutex);
             std::vector<AhEvent::Kind> got;
             for (const AhEvent& event : heard) got.push_back(event.kind);
             return got == kinds;
           }();
  };
  const AhHandle handle = *directory.acquire(to(2), soon());
  using EventKind = AhEvent::Kind;
  EXPECT_TRUE(has_heard({EventKind::kReady}));
  kernel.set_mac(ipv4(2), kOtherMac);
  directory.on_network_change(neighbour(ipv4(2), kOtherMac));
  EXPECT_TRUE(has_heard({EventKind::kReady, EventKind::kStale, EventKind::kReplaced}));
  EXPECT_EQ(heard[1].cause, AhCause::kNeighbour);
  EXPECT_EQ(heard[1].destination.gid, ipv4(2));
  EXPECT_EQ(heard[2].generation, 1U);
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  EXPECT_TRUE(has_heard({EventKind::kReady, EventKind::kStale, EventKind::kReplaced, EventKind::kFailed}));
  EXPECT_THAT(heard[3].error, ::testing::HasSubstr("neighbour"));
  directory.unsubscribe(subscription);
  set_create_hook({});
  ASSERT_TRUE(directory.acquire(to(4), soon()));
  EXPECT_EQ(heard.size(), 4U);
}

TEST_F(Network, ASubscriberMayAskTheDirectoryAndMayLeaveFromWithin) {
  AhDirectory directory = make_directory(fed());
  std::atomic<bool> asked{false};
  AhDirectory::Subscription subscription = 0;
  subscription = *directory.subscribe([&](const AhEvent& event) {
    if (event.destination.gid != ipv4(2)) return;
    directory.unsubscribe(subscription);
    asked = directory.acquire(to(3), soon()).has_value();
  });
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_TRUE(eventually([&] { return asked.load(); }));
}

}  // namespace
}  // namespace verbena::fake
