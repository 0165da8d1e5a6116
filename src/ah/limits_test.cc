#include <cerrno>
#include <vector>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Limits = AhWorld;

TEST_F(Limits, RotationOverMorePeersThanTheDeviceHolds) {
  set_max_ah("fake0", 64);
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  for (std::uint32_t round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const Result<AhHandle> handle = directory.acquire(to(2 + i), soon());
      ASSERT_TRUE(handle) << handle.error().message;
      ibv_ah* address = sender.next(*handle);
      ASSERT_NE(address, nullptr);
      ASSERT_TRUE(post(pair, address));
      if (posted_sends(pair.get()) == 32) {
        complete_sends(pair.get(), 16);
        sender.completed(16);
      }
    }
  }
  EXPECT_LE(live().addresses, 64U);
  EXPECT_EQ(violations().sum(), 0U);
  EXPECT_GE(directory.stats().reclaimed_pressure, 1000U);
  complete_sends(pair.get(), 100);
  sender.drained();
}

TEST_F(Limits, EnomemFromTheDeviceReclaimsAndTriesAgain) {
  set_max_ah("fake0", 4);
  set_advertised_max_ah("fake0", 1 << 20);  // the device says more than it holds
  AhDirectory directory = make_directory();
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(directory.acquire(to(2 + i), soon()));
  EXPECT_LE(live().addresses, 4U);
}

TEST_F(Limits, EnomemWithEverythingHeldIsExhaustedAndNotRemembered) {
  set_max_ah("fake0", 2);
  set_advertised_max_ah("fake0", 1 << 20);
  AhDirectory directory = make_directory();
  std::vector<AhHandle> held;
  held.push_back(*directory.acquire(to(2), soon()));
  held.push_back(*directory.acquire(to(3), soon()));
  const Result<AhHandle> refused = directory.acquire(to(4), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(refused.error().system_errno, ENOMEM);
  held.pop_back();
  EXPECT_TRUE(directory.acquire(to(4), soon()));
}

TEST_F(Limits, WhatIsHeldAndFoundNoRoomIsTriedAgainAfterItsBackOff) {
  set_max_ah("fake0", 1);
  set_advertised_max_ah("fake0", 1 << 20);
  AhDirectoryOptions brief = options();
  brief.first_back_off = brief.max_back_off = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(brief);
  const AhHandle held = *directory.acquire(to(2), soon());
  AhLease lease = std::move(*held.lease());
  ibv_ah* old = lease.get();
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = std::nullopt});
  // Nobody asks again, and it is tried again, in vain while the lease keeps the device's only place.
  ASSERT_TRUE(eventually([&] { return directory.stats().failed >= 3; }));
  EXPECT_FALSE(is_destroyed(old));
  lease = AhLease();
  ASSERT_TRUE(eventually([&] { return is_destroyed(old) && held.lease().has_value(); }));
  EXPECT_EQ(directory.rows()[0].failures, 0U);
}

TEST_F(Limits, WhoAsksForWhatFoundNoRoomIsAnsweredBeforeItsBackOffIsOver) {
  set_max_ah("fake0", 1);
  set_advertised_max_ah("fake0", 1 << 20);
  AhDirectory directory = make_directory();  // whose back-off is an hour
  const AhHandle held = *directory.acquire(to(2), soon());
  ASSERT_FALSE(directory.acquire(to(3), soon()));
  EXPECT_EQ(attempts(), 2U);
  AhLease lease = std::move(*held.lease());
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  EXPECT_EQ(attempts(), 3U);
}

TEST_F(Limits, PressureTakesTheLeastRecentlyUsed) {
  AhDirectoryOptions three = options();
  three.max_entries = 3;
  AhDirectory directory = make_directory(three);
  AhSender sender = std::move(*directory.make_sender());
  for (std::uint32_t i = 2; i < 5; ++i) ASSERT_TRUE(directory.acquire(to(i), soon()));
  for (const std::uint32_t peer : {3U, 2U, 4U, 2U}) ASSERT_NE(sender.next(to(peer)), nullptr);
  sender.drained();
  ASSERT_TRUE(directory.acquire(to(5), soon()));
  EXPECT_TRUE(directory.find(to(3)).empty());
  EXPECT_FALSE(directory.find(to(2)).empty());
  EXPECT_FALSE(directory.find(to(4)).empty());
}

// Its stamps go with it. What the others have not used since is no younger for that.
TEST_F(Limits, PressureIsNotMisledByASenderThatGoes) {
  AhDirectoryOptions three = options();
  three.max_entries = 3;
  AhDirectory directory = make_directory(three);
  AhSender goes = std::move(*directory.make_sender());
  AhSender stays = std::move(*directory.make_sender());
  std::vector<AhHandle> held;
  for (std::uint32_t i = 2; i < 5; ++i) held.push_back(*directory.acquire(to(i), soon()));
  const auto use = [](AhSender& sender, const AhHandle& handle) {
    ASSERT_NE(sender.next(handle), nullptr);
    sender.drained();
  };
  use(goes, held[0]);
  use(stays, held[1]);
  use(stays, held[2]);
  EXPECT_FALSE(directory.acquire(to(5), soon()));  // looks at who was used since the last time
  use(stays, held[1]);
  EXPECT_FALSE(directory.acquire(to(5), soon()));
  goes = AhSender();
  held.clear();
  ASSERT_TRUE(directory.acquire(to(5), soon()));
  EXPECT_TRUE(directory.find(to(2)).empty());
  ASSERT_TRUE(directory.acquire(to(6), soon()));
  EXPECT_TRUE(directory.find(to(4)).empty());
  EXPECT_FALSE(directory.find(to(3)).empty());
}

TEST_F(Limits, IdleDestinationsAreGivenBack) {
  AhDirectoryOptions short_lived = options();
  short_lived.idle_age = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(short_lived);
  const AhHandle held = *directory.acquire(to(2), soon());
  for (std::uint32_t i = 3; i < 20; ++i) ASSERT_TRUE(directory.acquire(to(i), soon()));
  EXPECT_TRUE(eventually([] { return live().addresses == 1; }));
  EXPECT_EQ(directory.stats().reclaimed_idle, 17U);
  EXPECT_FALSE(directory.find(to(2)).empty());
}

TEST_F(Limits, ADeviceThatNamesNoLimitHasTheDirectorysOwn) {
  set_advertised_max_ah("fake0", 0);
  AhDirectoryOptions eight = options();
  eight.max_entries = 8;
  AhDirectory directory = make_directory(eight);
  for (std::uint32_t i = 0; i < 50; ++i) ASSERT_TRUE(directory.acquire(to(2 + i), soon()));
  EXPECT_LE(live().addresses, 8U);
}

TEST_F(Limits, AFullDeviceStillReplacesWhatIsStale) {
  set_max_ah("fake0", 2);
  AhDirectory directory = make_directory();
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = std::nullopt});
  ASSERT_TRUE(eventually([&] { return creations() == 4 && directory.stats().refreshing == 0; }));
  EXPECT_TRUE(eventually([&] { return a.lease() && b.lease(); })) << "a handle is made before its entry has it";
  EXPECT_TRUE(eventually([] { return live().addresses == 2; }));
}

}  // namespace
}  // namespace verbena::fake
