// What the network says of routes, interfaces and addresses: which handles it touches, and that traffic recovers of
// itself.
#include <atomic>

#include <fake_verbs/network_world.h>

namespace verbena::fake {
namespace {

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
  const ibv_async_event event = event_of(IBV_EVENT_GID_CHANGE);
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

}  // namespace
}  // namespace verbena::fake
