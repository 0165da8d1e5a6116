#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Acquire = AhWorld;

std::string message_of(const Result<AhHandle>& result) {
  return result ? std::string("(no error)") : result.error().message;
}

TEST_F(Acquire, GivesAnAddressWithTheAttributesAskedFor) {
  AhDirectory directory = make_directory();
  Destination destination = to(2);
  destination.traffic_class = 0x68;
  destination.service_level = 3;
  destination.flow_label = 0xabcde;
  destination.hop_limit = 17;
  destination.static_rate = IBV_RATE_25_GBPS;
  const Result<AhHandle> handle = directory.acquire(destination, soon());
  ASSERT_TRUE(handle) << message_of(handle);
  const Result<AhLease> lease = handle->lease();
  ASSERT_TRUE(lease);
  const ibv_ah_attr attributes = attributes_of(lease->get());
  EXPECT_EQ(attributes.is_global, 1);
  EXPECT_EQ(attributes.port_num, 1);
  EXPECT_EQ(attributes.sl, 3);
  EXPECT_EQ(attributes.static_rate, IBV_RATE_25_GBPS);
  EXPECT_EQ(attributes.grh.sgid_index, 2);  // 10.0.0.1 as RoCE v2
  EXPECT_EQ(attributes.grh.hop_limit, 17);
  EXPECT_EQ(attributes.grh.traffic_class, 0x68);
  EXPECT_EQ(attributes.grh.flow_label, 0xabcdeU);
  EXPECT_EQ(std::memcmp(attributes.grh.dgid.raw, destination.gid.bytes.data(), 16), 0);
}

TEST_F(Acquire, DefaultHopLimitCrossesRouters) {
  AhDirectory directory = make_directory();
  const Result<AhHandle> handle = directory.acquire(to(2), soon());
  ASSERT_TRUE(handle);
  EXPECT_EQ(directory.effective(*handle)->attributes.grh.hop_limit, 64);
}

TEST_F(Acquire, MasksTheFlowLabelTo20Bits) {
  AhDirectory directory = make_directory();
  Destination wide = to(2);
  wide.flow_label = 0xfff00001;
  Destination narrow = to(2);
  narrow.flow_label = 0x00001;
  const Result<AhHandle> a = directory.acquire(wide, soon());
  const Result<AhHandle> b = directory.acquire(narrow, soon());
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(directory.effective(*a)->attributes.grh.flow_label, 1U);
  EXPECT_EQ(creations(), 1U);
}

TEST_F(Acquire, EveryFieldMakesADifferentAddress) {
  AhDirectory directory = make_directory();
  std::vector<Destination> all(6, to(2));
  all[1].traffic_class = 1;
  all[2].service_level = 1;
  all[3].flow_label = 1;
  all[4].hop_limit = 63;
  all[5].static_rate = IBV_RATE_10_GBPS;
  std::set<ibv_ah*> seen;
  for (const Destination& destination : all) {
    const Result<AhHandle> handle = directory.acquire(destination, soon());
    ASSERT_TRUE(handle) << message_of(handle);
    seen.insert(handle->lease()->get());
  }
  EXPECT_EQ(seen.size(), all.size());
  EXPECT_EQ(creations(), all.size());
}

TEST_F(Acquire, DestinationsThatComeToTheSameAttributesShareOneAddress) {
  AhDirectory directory = make_directory();
  Destination plain = to(2);
  Destination by_netdev = plain;
  by_netdev.netdev = kNetdev;
  Destination by_source = plain;
  by_source.source = ipv4(1);
  Destination by_port = plain;
  by_port.port = 1;
  std::set<ibv_ah*> seen;
  std::vector<AhHandle> handles;
  for (const Destination& destination : {plain, by_netdev, by_source, by_port}) {
    Result<AhHandle> handle = directory.acquire(destination, soon());
    ASSERT_TRUE(handle) << message_of(handle);
    seen.insert(handle->lease()->get());
    handles.push_back(std::move(*handle));
  }
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_EQ(creations(), 1U);
  EXPECT_EQ(directory.stats().live, 1U);
}

TEST_F(Acquire, TwoDomainsNeverShare) {
  AhDirectory first = make_directory();
  const ProtectionDomain other = std::move(*ProtectionDomain::create(context));
  AhDirectory second = std::move(*AhDirectory::create(other, 1, options()));
  const Result<AhHandle> a = first.acquire(to(2), soon());
  const Result<AhHandle> b = second.acquire(to(2), soon());
  ASSERT_TRUE(a && b);
  EXPECT_EQ(creations(), 2U);
  EXPECT_EQ(a->lease()->get()->pd, domain.get());
  EXPECT_EQ(b->lease()->get()->pd, other.get());
  EXPECT_FALSE(first.effective(*b));
}

TEST_F(Acquire, TwoPortsNeverShare) {
  AhDirectory first = make_directory();
  AhDirectory second = std::move(*AhDirectory::create(domain, 2, options()));
  ASSERT_TRUE(first.acquire(to(2), soon()) && second.acquire(to(2), soon()));
  EXPECT_EQ(creations(), 2U);
}

TEST_F(Acquire, SixtyFourThreadsMakeOneCreation) {
  AhDirectory directory = make_directory();
  std::latch created(1);
  set_create_hook([&](const ibv_ah_attr&) {
    created.wait();
    return 0;
  });
  constexpr std::size_t kThreads = 64;
  std::vector<Result<AhHandle>> results(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { results[i] = directory.acquire(to(2), soon()); });
  }
  ASSERT_TRUE(eventually([&] { return directory.stats().misses == kThreads; }));
  created.count_down();
  for (std::thread& thread : threads) thread.join();
  for (const Result<AhHandle>& result : results) {
    ASSERT_TRUE(result);
    EXPECT_EQ(*result, *results[0]);
  }
  EXPECT_EQ(attempts(), 1U);
}

TEST_F(Acquire, ThousandDestinationsFrom128ThreadsMakeThousandCreations) {
  AhDirectory directory = make_directory();
  constexpr std::uint32_t kDestinations = 1000;
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 128; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < kDestinations; ++i) {
        EXPECT_TRUE(directory.acquire(to(2 + (i + 8 * thread) % kDestinations), soon()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(creations(), kDestinations);
  EXPECT_EQ(directory.stats().created, kDestinations);
  EXPECT_EQ(directory.stats().ready, kDestinations);
}

TEST_F(Acquire, ADeadlineEndsTheWaitAndNotTheAttempt) {
  AhDirectory directory = make_directory();
  std::latch created(1);
  set_create_hook([&](const ibv_ah_attr&) {
    created.wait();
    return 0;
  });
  const Result<AhHandle> late = directory.acquire(to(2), Deadline::at({}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut);
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("10.0.0.2"));
  created.count_down();
  EXPECT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_EQ(attempts(), 1U);
}

TEST_F(Acquire, OneDeadPeerHoldsUpNobodyElse) {
  AhDirectory directory = make_directory();
  std::latch dead_peer_done(1);
  set_create_hook([&](const ibv_ah_attr& attributes) {
    if (attributes.grh.dgid.raw[15] != 66) return 0;
    dead_peer_done.wait();
    return ETIMEDOUT;
  });
  const AhTicket dead = directory.acquire_async(to(66));
  for (std::uint32_t i = 2; i < 50; ++i) EXPECT_TRUE(directory.acquire(to(i), soon()));
  EXPECT_FALSE(dead.ready());
  dead_peer_done.count_down();
  const Result<AhHandle> result = dead.wait(soon());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnreachable);
}

TEST_F(Acquire, AllWaitersLearnTheTypedError) {
  AhDirectory directory = make_directory();
  std::latch refuse(1);
  set_create_hook([&](const ibv_ah_attr&) {
    refuse.wait();
    return ETIMEDOUT;
  });
  std::vector<AhTicket> tickets;
  for (int i = 0; i < 8; ++i) tickets.push_back(directory.acquire_async(to(2)));
  refuse.count_down();
  for (const AhTicket& ticket : tickets) {
    const Result<AhHandle> result = ticket.wait(soon());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUnreachable);
    EXPECT_EQ(result.error().system_errno, ETIMEDOUT);
    EXPECT_THAT(result.error().message, ::testing::HasSubstr("neighbour"));
  }
  EXPECT_EQ(attempts(), 1U);
}

TEST_F(Acquire, AFailureIsRememberedUntilItsBackOffIsOver) {
  AhDirectory directory = make_directory();
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  const Result<AhHandle> again = directory.acquire(to(2), soon());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, ::testing::HasSubstr("failed 1 time"));
  EXPECT_EQ(attempts(), 1U);
  EXPECT_EQ(directory.stats().negative_hits, 1U);
  EXPECT_EQ(directory.stats().negative, 1U);
}

TEST_F(Acquire, AfterTheBackOffItIsTriedAgain) {
  AhDirectoryOptions eager = options();
  eager.first_back_off = eager.max_back_off = std::chrono::nanoseconds(0);
  AhDirectory directory = make_directory(eager);
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_EQ(attempts(), 2U);
  set_create_hook({});
  EXPECT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_EQ(directory.stats().negative, 0U);
}

// An application that asks all the time reaches the device ever more rarely. Only what must have passed is looked at: a
// busy machine takes longer.
TEST_F(Acquire, EachAttemptInARowWaitsTwiceAsLong) {
  using Clock = std::chrono::steady_clock;
  AhDirectoryOptions brief = options();
  brief.first_back_off = std::chrono::milliseconds(4);
  brief.max_back_off = std::chrono::milliseconds(16);
  AhDirectory directory = make_directory(brief);
  std::mutex mutex;
  std::vector<Clock::time_point> tries;
  set_create_hook([&](const ibv_ah_attr&) {
    const std::lock_guard lock(mutex);
    tries.push_back(Clock::now());
    return EHOSTUNREACH;
  });
  ASSERT_TRUE(eventually([&] {
    EXPECT_FALSE(directory.acquire(to(2), soon()));
    return attempts() >= 6;
  }));
  const std::lock_guard lock(mutex);
  const std::array<int, 5> least_ms{4, 8, 16, 16, 16};
  for (std::size_t i = 0; i < least_ms.size(); ++i) {
    EXPECT_GE(tries[i + 1] - tries[i], std::chrono::milliseconds(least_ms[i])) << "before attempt " << i + 2;
  }
  EXPECT_GT(directory.stats().negative_hits, 0U);
}

TEST_F(Acquire, RemembersNoMoreFailuresThanAllowed) {
  AhDirectoryOptions small = options();
  small.max_negative = 16;
  AhDirectory directory = make_directory(small);
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  for (std::uint32_t i = 2; i < 500; ++i) EXPECT_FALSE(directory.acquire(to(i), soon()));
  EXPECT_LE(directory.stats().negative, 17U);
}

TEST_F(Acquire, ATableThatChangedUnnoticedIsReadAgain) {
  AhDirectory directory = make_directory();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  set_gids("fake0", 1, {{}, {}, {}, {}, {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});  // and no event tells
  const Result<AhHandle> handle = directory.acquire(to(3), soon());
  ASSERT_TRUE(handle) << message_of(handle);
  EXPECT_EQ(directory.effective(*handle)->attributes.grh.sgid_index, 4);
}

TEST_F(Acquire, ATableThatHadNoSourceIsReadAgainByTheNextAttempt) {
  AhDirectoryOptions hasty = options();
  hasty.first_back_off = hasty.max_back_off = std::chrono::milliseconds(1);
  AhDirectory directory = make_directory(hasty);
  set_gids("fake0", 1, {{link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  ASSERT_FALSE(directory.acquire(to(2), soon()));
  set_gids("fake0", 1, usual_gids());  // and no event tells
  Result<AhHandle> handle;
  EXPECT_TRUE(eventually([&] {
    handle = directory.acquire(to(2), soon());
    return handle.has_value();
  })) << message_of(handle);
}

TEST_F(Acquire, PrewarmMakesAllReady) {
  AhDirectory directory = make_directory();
  std::vector<Destination> destinations;
  for (std::uint32_t i = 2; i < 102; ++i) destinations.push_back(to(i));
  EXPECT_EQ(directory.prewarm(destinations), 100U);
  EXPECT_TRUE(eventually([&] { return directory.stats().ready == 100; }));
  EXPECT_EQ(directory.prewarm(destinations), 0U);
  EXPECT_FALSE(directory.find(to(50)).empty());
  EXPECT_TRUE(directory.find(to(200)).empty());
}

TEST_F(Acquire, TicketsOfReadyDestinationsAreReady) {
  AhDirectory directory = make_directory();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  const AhTicket ticket = directory.acquire_async(to(2));
  EXPECT_TRUE(ticket.ready());
  EXPECT_TRUE(ticket.wait(Deadline::at({})));
}

TEST_F(Acquire, ACallbackLearnsTheOutcome) {
  AhDirectory directory = make_directory();
  std::promise<Result<AhHandle>> later;
  ASSERT_TRUE(
      directory.acquire_async(to(2)).on_ready([&](const Result<AhHandle>& result) { later.set_value(result); }));
  const Result<AhHandle> handle = later.get_future().get();
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->destination().gid, ipv4(2));
  // Also where it is ready already, and it may ask again from within.
  std::promise<bool> from_within;
  ASSERT_TRUE(directory.acquire_async(to(2)).on_ready(
      [&](const Result<AhHandle>& result) { from_within.set_value(result && directory.acquire(to(3), soon())); }));
  EXPECT_TRUE(from_within.get_future().get());
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  std::promise<ErrorCode> error;
  ASSERT_TRUE(directory.acquire_async(to(4)).on_ready(
      [&](const Result<AhHandle>& result) { error.set_value(result ? ErrorCode::kInternal : result.error().code); }));
  EXPECT_EQ(error.get_future().get(), ErrorCode::kUnreachable);
  EXPECT_FALSE(AhTicket().on_ready([](const Result<AhHandle>&) {}));
  EXPECT_FALSE(directory.acquire_async(to(2)).on_ready({}));
}

TEST_F(Acquire, CallbacksAreAnsweredWhenTheDirectoryCloses) {
  AhDirectory directory = make_directory();
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    go.wait();
    return 0;
  });
  std::promise<ErrorCode> error;
  ASSERT_TRUE(directory.acquire_async(to(2)).on_ready(
      [&](const Result<AhHandle>& result) { error.set_value(result ? ErrorCode::kInternal : result.error().code); }));
  ASSERT_TRUE(eventually([] { return attempts() == 1; }));
  EXPECT_FALSE(directory.close(Deadline::at({})).empty());
  EXPECT_EQ(error.get_future().get(), ErrorCode::kUnavailable);
  go.count_down();
}

TEST_F(Acquire, AStormAtTheStartIsAnsweredByFewAtATime) {
  AhDirectoryOptions four = options();
  four.creators = 4;
  AhDirectory directory = make_directory(four);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  set_create_hook([&](const ibv_ah_attr&) {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --running;
    return 0;
  });
  constexpr std::uint32_t kDestinations = 10000;
  std::vector<AhTicket> tickets;
  for (std::uint32_t i = 0; i < kDestinations; ++i) tickets.push_back(directory.acquire_async(to(2 + i)));
  for (const AhTicket& ticket : tickets) ASSERT_TRUE(ticket.wait(soon()));
  EXPECT_LE(most, 4);
  EXPECT_EQ(creations(), kDestinations);
}

TEST_F(Acquire, ExplainsItsSource) {
  AhDirectory directory = make_directory();
  const Result<AhHandle> handle = directory.acquire(to(2), soon());
  ASSERT_TRUE(handle);
  const Result<EffectiveAddress> effective = directory.effective(*handle);
  ASSERT_TRUE(effective);
  EXPECT_EQ(effective->source.gid, ipv4(1));
  EXPECT_EQ(effective->source.type, GidType::kRoceV2);
  EXPECT_EQ(effective->source.index, 2U);
  EXPECT_EQ(effective->destination.gid, ipv4(2));
  EXPECT_EQ(effective->generation, 0U);
  EXPECT_THAT(effective->explanation, ::testing::HasSubstr("RoCE v2 goes before v1"));
}

TEST_F(Acquire, WhatTheDeviceChangedIsAmongTheEffectiveAttributes) {
  fake::set_change_hook([](ibv_ah_attr& attributes) {
    if (attributes.grh.flow_label != 7) return;
    attributes.grh.hop_limit = 255;
    attributes.sl = 3;
  });
  AhDirectory directory = make_directory();
  Destination changed = to(2);
  changed.flow_label = 7;
  const AhHandle handle = *directory.acquire(changed, soon());
  const EffectiveAddress effective = *directory.effective(handle);
  EXPECT_EQ(effective.attributes.grh.hop_limit, 255);
  EXPECT_EQ(effective.attributes.sl, 3);
  EXPECT_THAT(effective.changes,
              ::testing::ElementsAre("sl: 0 asked for, 3 made", "grh.hop_limit: 64 asked for, 255 made"));

  const EffectiveAddress as_asked = *directory.effective(*directory.acquire(to(3), soon()));
  EXPECT_EQ(as_asked.attributes.grh.hop_limit, 64);
  EXPECT_THAT(as_asked.changes, ::testing::IsEmpty());
}

struct Refusal {
  const char* name;
  void (*spoil)(Destination&);
  const char* word;
};

class AcquireRefuses : public AhWorld, public ::testing::WithParamInterface<Refusal> {};

TEST_P(AcquireRefuses, NamingTheAttribute) {
  AhDirectory directory = make_directory();
  Destination destination = to(2);
  GetParam().spoil(destination);
  const Result<AhHandle> result = directory.acquire(destination, soon());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr(GetParam().word));
  EXPECT_EQ(attempts(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, AcquireRefuses,
    ::testing::Values(Refusal{"ZeroGid", [](Destination& d) { d.gid = {}; }, "GID is zero"},
                      Refusal{"Lid", [](Destination& d) { d.lid = 5; }, "lid 5"},
                      Refusal{"OtherPort", [](Destination& d) { d.port = 2; }, "port 2"},
                      Refusal{"HopLimit", [](Destination& d) { d.hop_limit = 0; }, "hop limit 0"},
                      Refusal{"ServiceLevel", [](Destination& d) { d.service_level = 16; }, "service level 16"},
                      Refusal{"PathBits", [](Destination& d) { d.source_path_bits = 128; }, "source path bits 128"},
                      Refusal{"PathBitsOfEthernet", [](Destination& d) { d.source_path_bits = 1; },
                              "source path bits 1"},
                      Refusal{"StaticRate", [](Destination& d) { d.static_rate = 1; }, "static rate 1"},
                      Refusal{"StaticRateAboveAll", [](Destination& d) { d.static_rate = 25; }, "static rate 25"}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(Acquire, NoRouteIsUnreachableInWords) {
  AhDirectoryOptions lost = options();
  lost.routes = [](const Gid&, std::uint32_t) -> Result<Route> {
    return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
  };
  AhDirectory directory = make_directory(lost);
  const Result<AhHandle> result = directory.acquire(to(2), soon());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(attempts(), 0U);
}

TEST_F(Acquire, ARateIsDerivedFromThePathAndJudgedAgainstThePort) {
  Port port;
  port.gids = {{ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}};
  port.active_width = 2;   // 4x
  port.active_speed = 32;  // EDR: 100 Gbit/s in all
  set_port("fake0", 1, port);
  AhDirectory directory = make_directory();
  constexpr std::uint64_t kGiga = 1'000'000'000;
  EXPECT_EQ(directory.paced(to(2), {.bits_per_second = 25 * kGiga}).static_rate, IBV_RATE_25_GBPS);
  EXPECT_EQ(directory.paced(to(2), {.bits_per_second = 200 * kGiga}).static_rate, IBV_RATE_MAX);
  EXPECT_EQ(directory.paced(to(2), {}).static_rate, IBV_RATE_MAX);
  Destination own = to(2);
  own.static_rate = IBV_RATE_10_GBPS;
  EXPECT_EQ(directory.paced(own, {.bits_per_second = 25 * kGiga}), own) << "it names a rate";

  const auto judged = [&](ibv_rate rate) {
    Destination destination = to(2);
    destination.static_rate = static_cast<std::uint8_t>(rate);
    return directory.effective(*directory.acquire(destination, soon()))->rate;
  };
  EXPECT_EQ(judged(IBV_RATE_MAX).severity, Severity::kGood);
  EXPECT_EQ(judged(IBV_RATE_50_GBPS).severity, Severity::kGood);
  EXPECT_EQ(judged(IBV_RATE_10_GBPS).severity, Severity::kNote) << "most of the port stays unused";
  const RateAdvice above = judged(IBV_RATE_200_GBPS);
  EXPECT_EQ(above.severity, Severity::kWarning);
  EXPECT_NE(above.text.find("200 Gbit/s"), std::string::npos) << above.text;
}

TEST_F(Acquire, TheOldestAddressIsTold) {
  AhDirectory directory = make_directory();
  EXPECT_EQ(directory.stats().oldest_ms, 0U);
  const AhHandle handle = *directory.acquire(to(2), soon());
  EXPECT_TRUE(eventually([&] { return directory.stats().oldest_ms >= 2; }));
}

TEST_F(Acquire, InfiniBandAddressesByLid) {
  Port port;
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = 9;
  set_port("fake0", 1, port);
  AhDirectory directory = make_directory();
  Destination destination;
  EXPECT_FALSE(directory.acquire(destination, soon()));
  destination.lid = 12;
  destination.source_path_bits = 2;
  const Result<AhHandle> handle = directory.acquire(destination, soon());
  ASSERT_TRUE(handle) << message_of(handle);
  const ibv_ah_attr attributes = directory.effective(*handle)->attributes;
  EXPECT_EQ(attributes.dlid, 12);
  EXPECT_EQ(attributes.is_global, 0);
  EXPECT_EQ(attributes.src_path_bits, 2);
}

TEST_F(Acquire, WhatIsWrongOnInfiniBandIsNamed) {
  Port port;
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = 8;
  port.lmc = 2;
  port.gids = {{link_local(1), IBV_GID_TYPE_IB, 0}};
  set_port("fake0", 1, port);
  AhDirectory directory = make_directory();
  const auto refusal = [&](const Destination& destination) {
    const Result<AhHandle> none = directory.acquire(destination, soon());
    EXPECT_FALSE(none);
    return none ? std::string() : none.error().message;
  };
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::Not;
  Destination destination;
  destination.lid = 0xffff;
  EXPECT_THAT(refusal(destination), HasSubstr("lid 65535 is the permissive LID"));
  destination.lid = 0xc001;
  EXPECT_THAT(refusal(destination), HasSubstr("lid 49153 is one of multicast"));
  destination.lid = 5;
  destination.netdev = 7;
  EXPECT_THAT(refusal(destination), HasSubstr("netdev 7 names a network interface"));
  EXPECT_EQ(attempts(), 0U);
  destination.netdev = 0;
  fake::set_create_hook([](const ibv_ah_attr&) { return EINVAL; });
  destination.source_path_bits = 4;
  EXPECT_THAT(refusal(destination),
              AllOf(HasSubstr("LID 5 with source path bits 4"), HasSubstr("beyond the port's LMC 2"),
                    HasSubstr("4 LIDs from 8 on: use 0 to 3"), Not(HasSubstr("RoCE"))));
  destination.source_path_bits = 0;
  destination.gid = link_local(2);
  EXPECT_THAT(refusal(destination), AllOf(HasSubstr("at LID 5"), HasSubstr("source GID"), Not(HasSubstr("RoCE"))));
}

TEST_F(Acquire, InfiniBandPortThatDemandsAGrhGetsOne) {
  Port port;
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = 9;
  port.flags = IBV_QPF_GRH_REQUIRED;
  port.gids = {{link_local(1), IBV_GID_TYPE_IB, 0}};
  set_port("fake0", 1, port);
  AhDirectory directory = make_directory();
  Destination destination;
  destination.lid = 12;
  EXPECT_FALSE(directory.acquire(destination, soon()));
  destination.gid = link_local(2);
  const Result<AhHandle> handle = directory.acquire(destination, soon());
  ASSERT_TRUE(handle) << message_of(handle);
  EXPECT_EQ(directory.effective(*handle)->attributes.is_global, 1);
}

TEST_F(Acquire, AnEmptyDirectorySaysSoAndHasNothing) {
  AhDirectory directory;
  EXPECT_EQ(directory.acquire(to(2), soon()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(directory.make_sender().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(directory.acquire_async(to(2)).wait(soon()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(directory.find(to(2)).empty());
  EXPECT_FALSE(directory.effective(AhHandle()));
  EXPECT_FALSE(directory.subscribe([](const AhEvent&) {}));
  EXPECT_EQ(directory.stats().created, 0U);
  EXPECT_TRUE(directory.rows().empty());
  EXPECT_EQ(directory.name(), "");
  directory.on_async_event({});
  EXPECT_TRUE(directory.close(soon()).empty());
}

TEST_F(Acquire, OptionsOutOfRangeAreRefused) {
  AhDirectoryOptions none = options();
  none.creators = 0;
  EXPECT_FALSE(AhDirectory::create(domain, 1, none));
  none = options();
  none.max_entries = 0;
  EXPECT_FALSE(AhDirectory::create(domain, 1, none));
  for (const std::chrono::nanoseconds lag : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::max()}) {
    none = options();
    none.device_lag = lag;
    const Result<AhDirectory> refused = AhDirectory::create(domain, 1, none);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("use 0 to an hour"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(AhDirectory::create(domain, 9, options()));
  EXPECT_FALSE(AhDirectory::create(nullptr, 1, options()));
}

}  // namespace
}  // namespace verbena::fake
