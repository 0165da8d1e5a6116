#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <latch>

#include <fake_verbs/ah_world.h>
#include <pthread.h>

namespace verbena::fake {
namespace {

using Events = AhWorld;

AhDirectoryOptions fed(AhDirectoryOptions options) {
  options.watch_async_events = false;
  return options;
}

TEST_F(Events, GidChangeThatChangesNothingTouchesNothing) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle handle = *directory.acquire(to(2), soon());
  const std::uint64_t reads = table_reads();
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] { return table_reads() > reads; }));
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().stale, 0U);
  EXPECT_EQ(creations(), 2U);
}

TEST_F(Events, AGidThatMovedIsFollowed) {
  AhDirectory directory = make_directory(fed(options()));
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* before = sender.next(handle);
  set_gids("fake0", 1,
           {{}, {link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev}, {}, {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  ibv_ah* after = sender.next(handle);
  EXPECT_NE(after, before);
  EXPECT_EQ(attributes_of(after).grh.sgid_index, 3);
  EXPECT_EQ(directory.effective(handle)->generation, 1U);
  EXPECT_FALSE(is_destroyed(before));  // in flight
  sender.completed(1);
  EXPECT_TRUE(eventually([&] { return is_destroyed(before); }));
  sender.completed(1);
}

TEST_F(Events, TheOldAddressServesUntilTheNewOneIsThere) {
  AhDirectory directory = make_directory(fed(options()));
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* before = sender.next(handle);
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    go.wait();
    return 0;
  });
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  ASSERT_TRUE(eventually([] { return attempts() == 2; }));
  EXPECT_EQ(sender.next(handle), before);
  go.count_down();
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_NE(sender.next(handle), before);
  sender.drained();
}

TEST_F(Events, AllGidsVanishAndComeBack) {
  AhDirectory directory = make_directory(fed(options()));
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_gids("fake0", 1, {});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] { return sender.next(handle) == nullptr; }));
  ASSERT_TRUE(eventually([&] { return directory.stats().negative == 1; }));  // no other source was found either
  const Result<AhLease> none = handle.lease();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, ::testing::HasSubstr("no GID"));
  set_gids("fake0", 1, {{}, {}, {}, {}, {}, {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ibv_ah* back = nullptr;
  ASSERT_TRUE(eventually([&] { return (back = sender.next(handle)) != nullptr; }));
  EXPECT_EQ(attributes_of(back).grh.sgid_index, 5);
  sender.drained();
}

TEST_F(Events, ASourceThatIsGoneIsReplacedByAnother) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_gids("fake0", 1, {{ipv4(9), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] {
    const Result<EffectiveAddress> effective = directory.effective(handle);
    return effective && effective->source.gid == ipv4(9);
  }));
  EXPECT_EQ(directory.stats().stale_gid, 1U);
}

TEST_F(Events, ASourceThatIsGoneServesNobodyWhileOthersAreMade) {
  AhDirectoryOptions one_thread = fed(options());
  one_thread.creators = 1;
  AhDirectory directory = make_directory(one_thread);
  AhSender sender = std::move(*directory.make_sender());
  std::vector<AhHandle> handles;
  for (std::uint32_t peer = 2; peer < 52; ++peer) handles.push_back(*directory.acquire(to(peer), soon()));
  std::latch begun(1);
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    if (attempts() == 51) begun.count_down();
    go.wait();
    return 0;
  });
  set_gids("fake0", 1, {{ipv4(9), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  begun.wait();
  for (const AhHandle& handle : handles) EXPECT_EQ(sender.next(handle), nullptr);
  go.count_down();
  for (const AhHandle& handle : handles) EXPECT_TRUE(eventually([&] { return sender.next(handle) != nullptr; }));
  sender.drained();
}

TEST_F(Events, OfAnotherPortAreIgnored) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle handle = *directory.acquire(to(2), soon());
  const std::uint64_t reads = table_reads();
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE, 2));
  directory.on_async_event(event_of(IBV_EVENT_QP_FATAL));
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_EQ(table_reads(), reads);
  EXPECT_EQ(creations(), 2U);
}

TEST_F(Events, ACauseIsOfTheEventThatSetIt) {
  AhDirectoryOptions one_thread = fed(options());
  one_thread.creators = 1;
  AhDirectory directory = make_directory(one_thread);
  const AhHandle handle = *directory.acquire(to(2), soon());
  std::latch begun(1);
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    if (attempts() != 2) return 0;
    begun.count_down();
    go.wait();
    return 0;
  });
  const AhTicket blocks = directory.acquire_async(to(3));
  begun.wait();
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  go.count_down();
  ASSERT_TRUE(blocks.wait(soon()));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced >= 1; }));
  EXPECT_GE(directory.stats().stale_port, 1U);
  EXPECT_EQ(directory.stats().stale_gid, 0U);
}

TEST_F(Events, AWatchingDirectoryReadsThemItself) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  raise_event("fake0", IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
}

TEST_F(Events, TwoWatchingDirectoriesBothLearn) {
  AhDirectory first = make_directory();
  AhDirectory second = make_directory();
  const AhHandle a = *first.acquire(to(2), soon());
  const AhHandle b = *second.acquire(to(2), soon());
  raise_event("fake0", IBV_EVENT_PORT_ACTIVE);
  EXPECT_TRUE(eventually([&] { return first.stats().replaced == 1 && second.stats().replaced == 1; }));
}

TEST_F(Events, AFailedReplacementIsTriedAgainUnasked) {
  AhDirectoryOptions eager = fed(options());
  eager.first_back_off = eager.max_back_off = std::chrono::nanoseconds(1);
  AhDirectory directory = make_directory(eager);
  const AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* before = handle.lease()->get();
  set_create_hook([](const ibv_ah_attr&) { return ETIMEDOUT; });
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  ASSERT_TRUE(eventually([&] { return directory.stats().failed >= 3; }));
  EXPECT_EQ(handle.lease()->get(), before);  // better than none
  set_create_hook({});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_NE(handle.lease()->get(), before);
}

TEST_F(Events, AFailedReplacementHasItsTurnWithinAStreamOfCreations) {
  AhDirectoryOptions eager = fed(options());
  eager.first_back_off = eager.max_back_off = std::chrono::nanoseconds(1);
  eager.creators = 1;
  AhDirectory directory = make_directory(eager);
  const AhHandle handle = *directory.acquire(to(2), soon());
  std::latch begun(1);
  std::latch go(1);
  std::atomic<int> created{0};
  std::atomic<int> when_restored{0};
  set_create_hook([&](const ibv_ah_attr& attributes) {
    if (std::memcmp(attributes.grh.dgid.raw, ipv4(2).bytes.data(), sizeof attributes.grh.dgid.raw) == 0) {
      if (created == 0) return ETIMEDOUT;
      if (when_restored == 0) when_restored = created.load();
    } else if (created++ == 0) {
      begun.count_down();
      go.wait();
    }
    return 0;
  });
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  ASSERT_TRUE(eventually([&] { return directory.stats().failed >= 1; }));
  constexpr std::uint32_t kStream = 1000;
  std::vector<AhTicket> stream;
  for (std::uint32_t peer = 0; peer < kStream; ++peer) stream.push_back(directory.acquire_async(to(1000 + peer)));
  begun.wait();
  ASSERT_TRUE(eventually([&] { return directory.stats().refreshing == 1; }));
  go.count_down();
  for (const AhTicket& ticket : stream) ASSERT_TRUE(ticket.wait(soon()));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_GE(when_restored, 1);
  EXPECT_LE(when_restored, 20);
}

TEST_F(Events, AnEventDuringACreationIsNotLost) {
  AhDirectory directory = make_directory(fed(options()));
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    go.wait();
    return 0;
  });
  const AhTicket ticket = directory.acquire_async(to(2));
  ASSERT_TRUE(eventually([] { return attempts() == 1; }));
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  go.count_down();
  const Result<AhHandle> handle = ticket.wait(soon());
  ASSERT_TRUE(handle);
  EXPECT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
}

TEST_F(Events, ASourceThatGoesDuringACreationDoesNotServe) {
  AhDirectory directory = make_directory(fed(options()));
  AhSender sender = std::move(*directory.make_sender());
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    go.wait();
    return 0;
  });
  const AhTicket ticket = directory.acquire_async(to(2));
  ASSERT_TRUE(eventually([] { return attempts() == 1; }));
  // Its index is taken by another, so that the device does not refuse.
  set_gids("fake0", 1, std::vector<GidPlace>(3, {link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev}));
  const std::uint64_t reads = table_reads();
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] { return table_reads() > reads; }));
  go.count_down();
  const Result<AhHandle> handle = ticket.wait(soon());
  ASSERT_TRUE(handle);
  EXPECT_TRUE(eventually([&] { return !handle->lease(); }));
  EXPECT_EQ(sender.next(*handle), nullptr);
}

TEST_F(Events, ADeviceThatIsGoneAnswersAtOnce) {
  AhDirectory directory = make_directory(fed(options()));
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_async_event(event_of(IBV_EVENT_DEVICE_FATAL));
  EXPECT_EQ(sender.next(handle), nullptr);
  const Result<AhHandle> result = directory.acquire(to(2), soon());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
}

TEST_F(Events, ANeighbourChangeTouchesOnlyItsDestination) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(to(3), soon());
  ibv_ah* of_b = b.lease()->get();
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = kNetdev, .address = ipv4(2)});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(b.lease()->get(), of_b);
  EXPECT_EQ(creations(), 3U);
}

TEST_F(Events, ANetworkChangeTriesAgainWhatIsHeldWithoutAnAddress) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_gids("fake0", 1, {});
  directory.on_async_event(event_of(IBV_EVENT_GID_CHANGE));
  ASSERT_TRUE(eventually([&] { return !handle.lease(); }));
  set_gids("fake0", 1, usual_gids());
  directory.on_network_change({.kind = NetworkChange::Kind::kLink, .netdev = kNetdev, .address = std::nullopt});
  EXPECT_TRUE(eventually([&] { return handle.lease().has_value(); }));
}

TEST_F(Events, DestinationsThatShareAnAddressShareItsReplacement) {
  AhDirectory directory = make_directory(fed(options()));
  Destination by_netdev = to(2);
  by_netdev.netdev = kNetdev;
  const AhHandle a = *directory.acquire(to(2), soon());
  const AhHandle b = *directory.acquire(by_netdev, soon());
  directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 2; }));
  EXPECT_EQ(a.lease()->get(), b.lease()->get());
  EXPECT_EQ(creations(), 2U);
}

struct EventOfPort {
  ibv_event_type type;
  std::uint8_t link_layer;
  std::uint64_t AhStats::*stale;  // where it is counted that all are made anew; null: the table is read, and says that
                                  // each source is where it was
};

class EachEvent : public AhWorld, public ::testing::WithParamInterface<EventOfPort> {};

TEST_P(EachEvent, MakesAnewWhatItConcernsAndNothingElse) {
  const EventOfPort& told = GetParam();
  Destination destination = to(2);
  if (told.link_layer == IBV_LINK_LAYER_INFINIBAND) {
    Port port;
    port.link_layer = told.link_layer;
    port.lid = 9;
    set_port("fake0", 1, port);
    destination = {};
    destination.lid = 12;
  }
  AhDirectoryOptions one_thread = fed(options());
  one_thread.creators = 1;
  AhDirectory directory = make_directory(one_thread);
  const AhHandle handle = *directory.acquire(destination, soon());
  const std::uint64_t reads = table_reads();
  directory.on_async_event(event_of(told.type));
  // Behind what the event leads to, since one thread does both.
  Destination another = destination;
  another.traffic_class = 8;
  ASSERT_TRUE(directory.acquire(another, soon()));
  EXPECT_GT(table_reads(), reads);
  if (told.stale != nullptr) {
    EXPECT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
    EXPECT_EQ(directory.stats().*told.stale, 1U);
  }
  EXPECT_EQ(directory.stats().stale, told.stale != nullptr ? 1U : 0U);
  EXPECT_EQ(creations(), told.stale != nullptr ? 3U : 2U);
}

INSTANTIATE_TEST_SUITE_P(
    Events, EachEvent,
    ::testing::Values(EventOfPort{IBV_EVENT_GID_CHANGE, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_PORT_ERR, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_PKEY_CHANGE, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_LID_CHANGE, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_SM_CHANGE, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_CLIENT_REREGISTER, IBV_LINK_LAYER_ETHERNET, nullptr},
                      EventOfPort{IBV_EVENT_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET, &AhStats::stale_port},
                      EventOfPort{IBV_EVENT_GID_CHANGE, IBV_LINK_LAYER_INFINIBAND, nullptr},
                      EventOfPort{IBV_EVENT_PORT_ERR, IBV_LINK_LAYER_INFINIBAND, nullptr},
                      EventOfPort{IBV_EVENT_PKEY_CHANGE, IBV_LINK_LAYER_INFINIBAND, nullptr},
                      EventOfPort{IBV_EVENT_LID_CHANGE, IBV_LINK_LAYER_INFINIBAND, &AhStats::stale_lid},
                      EventOfPort{IBV_EVENT_SM_CHANGE, IBV_LINK_LAYER_INFINIBAND, &AhStats::stale_subnet_manager},
                      EventOfPort{IBV_EVENT_CLIENT_REREGISTER, IBV_LINK_LAYER_INFINIBAND, &AhStats::stale_reregister},
                      EventOfPort{IBV_EVENT_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND, &AhStats::stale_port}),
    [](const auto& test) {
      const bool infiniband = test.param.link_layer == IBV_LINK_LAYER_INFINIBAND;
      std::string name = infiniband ? "InfiniBand_" : "Ethernet_";
      for (const char letter : std::string(ibv_event_type_str(test.param.type)))
        name += std::isalnum(letter) ? letter : '_';
      return name;
    });

TEST_F(Events, WhatTheTableShowsIsCountedByTheEventThatLedToTheLook) {
  AhDirectory directory = make_directory(fed(options()));
  const AhHandle handle = *directory.acquire(to(2), soon());
  std::vector<GidPlace> gids = usual_gids();
  const auto moves = [&](ibv_event_type type, std::uint64_t AhStats::*count) {
    gids.insert(gids.begin(), GidPlace{});
    set_gids("fake0", 1, gids);
    const AhStats before = directory.stats();
    directory.on_async_event(event_of(type));
    EXPECT_TRUE(eventually([&] { return directory.stats().replaced == before.replaced + 1; }));
    EXPECT_EQ(directory.stats().*count, before.*count + 1) << ibv_event_type_str(type);
  };
  moves(IBV_EVENT_PORT_ERR, &AhStats::stale_port);
  moves(IBV_EVENT_PKEY_CHANGE, &AhStats::stale_pkey);
  moves(IBV_EVENT_GID_CHANGE, &AhStats::stale_gid);
}

TEST_F(Events, ASubscriberForWhomNoThreadCanBeMadeIsRefusedInWords) {
  AhDirectory directory = make_directory(fed(options()));
  pthread_attr_t usual;
  pthread_attr_t impossible;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&impossible), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
  const Result<AhDirectory::Subscription> refused = directory.subscribe([](const AhEvent&) {});
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("thread"));
  EXPECT_TRUE(directory.subscribe([](const AhEvent&) {}));
}

// Which is after the directory has read the table, and before it could hear of it later on.
TEST_F(Events, AChangeOfTheTableWhileADirectoryIsMadeIsNotLost) {
  AhDirectory other = make_directory();
  const AhHandle of_other = *other.acquire(to(2), soon());
  std::atomic<bool> first{true};
  set_table_hook([&] {
    if (!first.exchange(false)) return;
    std::vector<GidPlace> gids = usual_gids();
    gids[2].gid = ipv4(9);
    gids.push_back({ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev});
    set_gids("fake0", 1, gids);
    raise_event("fake0", IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(eventually([&] { return other.stats().replaced == 1; }));
  });
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  EXPECT_TRUE(eventually([&] {
    ibv_ah* address = sender.next(handle);
    sender.drained();
    return address != nullptr && attributes_of(address).grh.sgid_index == 3;
  }));
  set_table_hook({});
}

// It is ready, and stale from the beginning.
TEST_F(Events, WhatIsPutInDoubtWhileItIsMadeIsCountedAsStale) {
  AhDirectory directory = make_directory(fed(options()));
  set_create_hook([&](const ibv_ah_attr&) {
    if (attempts() == 1) directory.on_async_event(event_of(IBV_EVENT_PORT_ACTIVE));
    return 0;
  });
  const AhHandle handle = *directory.acquire(to(2), soon());
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  const AhStats stats = directory.stats();
  EXPECT_EQ(stats.stale, 1U);
  EXPECT_EQ(stats.stale_port, 1U);
  EXPECT_EQ(creations(), 2U);
}

}  // namespace
}  // namespace verbena::fake
