// Notices that are lost, that concern nobody, or that nobody gives; and what a subscriber learns.
#include <atomic>
#include <mutex>

#include <fake_verbs/network_world.h>

namespace verbena::fake {
namespace {

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

TEST_F(Network, AnEmptySubscriberIsRefused) {
  AhDirectory directory = make_directory(fed());
  const Result<AhDirectory::Subscription> refused = directory.subscribe({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(directory.acquire(to(2), soon()));
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
