// What the network says of neighbours: which addresses it touches.
#include <atomic>
#include <cerrno>

#include <fake_verbs/network_world.h>

namespace verbena::fake {
namespace {

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

TEST_F(Network, ANeighbourThatTheKernelForgotIsMadeAnewWhenItsTimeIsOver) {
  kernel.set_mac(ipv4(2), kMac);
  AhDirectoryOptions prompt = fed();
  prompt.forgotten_age = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(prompt);
  const AhHandle handle = *directory.acquire(to(2), soon());
  const AhHandle other = *directory.acquire(to(3), soon());
  directory.on_network_change(neighbour(ipv4(2), std::nullopt, true));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1 && is_quiet(directory); }));
  EXPECT_EQ(directory.stats().stale_age, 1U) << "the new one is not forgotten, and the other never was";
  EXPECT_EQ(creations(), 3U);
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

}  // namespace
}  // namespace verbena::fake
