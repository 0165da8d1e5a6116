#include "verbena/tenant.h"

#include <array>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <fake_verbs/ah_world.h>

#include "ah/token_bucket.h"
#include "verbena/release_failure.h"

namespace verbena::fake {
namespace {

using Tenants = AhWorld;

Tenant make_tenant(const Context& context, TenantOptions options) {
  return std::move(*Tenant::create(context, std::move(options)));
}

TEST_F(Tenants, ReleasesEverythingInOrderAndSaysWhat) {
  Tenant tenant = make_tenant(context, {.name = "trainer"});
  AhDirectory directory = std::move(*tenant.directory(1, options()));
  for (std::uint32_t peer = 2; peer < 12; ++peer) ASSERT_TRUE(directory.acquire(to(peer), soon()));
  EXPECT_EQ(tenant.usage().handles, 10U);
  const TenantRelease released = tenant.close(soon());
  EXPECT_TRUE(released.complete()) << released.in_words();
  EXPECT_EQ(released.directories, 1U);
  EXPECT_EQ(released.address_handles, 10U);
  EXPECT_TRUE(released.leaked.empty());
  EXPECT_EQ(live().domains, 1U);  // the fixture's own
  EXPECT_FALSE(tenant.directory(1, options()));
}

TEST_F(Tenants, NamesWhatIsStillThereWithThePlaceThatMadeIt) {
  Tenant tenant = make_tenant(context, {.name = "leaky"});
  std::array<std::byte, 64> memory{};
  CompletionQueue completions = std::move(*CompletionQueue::create(context, 16));
  MemoryRegion region = std::move(*MemoryRegion::create(tenant.domain(), memory));
  QueuePair pair = std::move(*QueuePair::create_ud(tenant.domain(), completions, completions));
  const TenantRelease released = tenant.close(Deadline::at({}));
  EXPECT_FALSE(released.complete());
  EXPECT_EQ(released.leaked.size(), 3U);
  EXPECT_THAT(released.in_words(), ::testing::HasSubstr("memory region of 64 bytes (made at "));
  EXPECT_THAT(released.in_words(), ::testing::HasSubstr("tenant_test.cc:"));
  EXPECT_THAT(released.in_words(), ::testing::HasSubstr("queue pair"));
  EXPECT_THAT(released.in_words(), ::testing::HasSubstr("completion queue"));
  ASSERT_TRUE(pair.close());
  ASSERT_TRUE(region.close());
  ASSERT_TRUE(completions.close());
  EXPECT_TRUE(tenant.close(soon()).complete());
}

TEST_F(Tenants, WorkInFlightIsNamedAndHoldsTheDomain) {
  Tenant tenant = make_tenant(context, {.name = "busy"});
  AhDirectory directory = std::move(*tenant.directory(1, options()));
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  AhSender sender = std::move(*directory.make_sender());
  ASSERT_NE(sender.next(to(2)), nullptr);
  const TenantRelease released = tenant.close(Deadline::at({}));
  EXPECT_FALSE(released.complete());
  ASSERT_EQ(released.left.size(), 1U);
  EXPECT_TRUE(released.left[0].rows[0].in_flight);
  sender.drained();
  EXPECT_TRUE(tenant.close(soon()).complete());
}

TEST_F(Tenants, ADestructorReportsWhatItLeaves) {
  std::string reported;
  set_release_failure_handler([&](const Error& error) { reported += error.message; });
  {
    QueuePair pair;
    CompletionQueue completions = std::move(*CompletionQueue::create(context, 16));
    const Tenant tenant = make_tenant(context, {.name = "forgetful", .close_grace = std::chrono::nanoseconds(1)});
    pair = std::move(*QueuePair::create_ud(tenant.domain(), completions, completions));
  }
  set_release_failure_handler({});
  EXPECT_THAT(reported, ::testing::HasSubstr("tenant forgetful (made at "));
  EXPECT_THAT(reported, ::testing::HasSubstr("queue pair"));
}

TEST_F(Tenants, AFullBudgetNamesTheBudget) {
  Tenant tenant = make_tenant(context, {.name = "small", .max_handles = 1});
  AhDirectory directory = std::move(*tenant.directory(1, options()));
  const AhHandle held = *directory.acquire(to(2), soon());
  const Result<AhHandle> refused = directory.acquire(to(3), soon());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("raise max_handles"));
}

TEST_F(Tenants, ABudgetOfHandlesHoldsAcrossItsDirectories) {
  Tenant tenant = make_tenant(context, {.name = "small", .max_handles = 8});
  AhDirectory first = std::move(*tenant.directory(1, options()));
  AhDirectory second = std::move(*tenant.directory(2, options()));
  std::vector<AhHandle> held;
  for (std::uint32_t peer = 2; peer < 6; ++peer) {
    held.push_back(*first.acquire(to(peer), soon()));
    held.push_back(*second.acquire(to(peer), soon()));
  }
  const Result<AhHandle> refused = first.acquire(to(100), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("all 8 address handles that small may have"));
  held.erase(held.begin());  // of the first: it is room for the second as well
  EXPECT_TRUE(second.acquire(to(100), soon()));
  EXPECT_LE(tenant.usage().handles, 8U);
}

TEST_F(Tenants, ABudgetOfMemoryIsRefusedInWords) {
  Tenant tenant = make_tenant(context, {.name = "thin", .max_memory = 12'000});
  AhDirectoryOptions few = options();
  few.max_entries = 64;
  AhDirectory directory = std::move(*tenant.directory(1, few));
  std::vector<AhHandle> held;
  Result<AhHandle> last = directory.acquire(to(2), soon());
  for (std::uint32_t peer = 3; last && peer < 200; ++peer) {
    held.push_back(std::move(*last));
    last = directory.acquire(to(peer), soon());
  }
  ASSERT_FALSE(last);
  EXPECT_THAT(last.error().message, ::testing::HasSubstr("memory of the tenant"));
  EXPECT_LE(tenant.usage().memory, 12'000U);
  EXPECT_GT(held.size(), 10U);
}

TEST_F(Tenants, WhoIsOverItsShareGivesFirst) {
  set_max_ah("fake0", 64);
  Tenant greedy = make_tenant(context, {.name = "greedy"});
  AhDirectory first = std::move(*greedy.directory(1, options()));
  for (std::uint32_t peer = 2; peer < 102; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  EXPECT_EQ(greedy.usage().handles, 64U);
  Tenant late = make_tenant(context, {.name = "late"});
  AhDirectory second = std::move(*late.directory(1, options()));
  std::vector<AhHandle> held;
  for (std::uint32_t peer = 2; peer < 34; ++peer) {
    Result<AhHandle> handle = second.acquire(to(peer), soon());
    ASSERT_TRUE(handle) << handle.error().message;
    held.push_back(std::move(*handle));
  }
  EXPECT_EQ(late.usage().handles, 32U);
  EXPECT_EQ(first.stats().reclaimed_share, 32U);
  EXPECT_EQ(second.stats().reclaimed_pressure, 0U);
  // At their shares, each makes room in its own.
  for (std::uint32_t peer = 200; peer < 300; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  EXPECT_EQ(late.usage().handles, 32U);
  EXPECT_EQ(second.stats().reclaimed_share, 0U);
}

TEST_F(Tenants, NobodyStarvesBehindOneWhoHoldsOnToAll) {
  set_max_ah("fake0", 64);
  Tenant greedy = make_tenant(context, {.name = "greedy"});
  const Tenant other = make_tenant(context, {.name = "other"});
  AhDirectory first = std::move(*greedy.directory(1, options()));
  std::vector<AhHandle> held;
  Result<AhHandle> handle = first.acquire(to(2), soon());
  for (std::uint32_t peer = 3; handle && peer < 200; ++peer) {
    held.push_back(std::move(*handle));
    handle = first.acquire(to(peer), soon());
  }
  ASSERT_FALSE(handle);
  EXPECT_THAT(handle.error().message, ::testing::HasSubstr("its share is 32"));
  EXPECT_EQ(held.size(), 56U);  // a quarter of the other's share is kept for it
}

TEST_F(Tenants, TwoInRotationOverOneSmallDeviceBothSendAlways) {
  set_max_ah("fake0", 64);
  const auto rotate = [](AhDirectory& directory, QueuePair& pair, AhSender& sender, std::uint32_t peer) {
    const Result<AhHandle> handle = directory.acquire(to(peer), soon());
    ASSERT_TRUE(handle) << handle.error().message;
    ibv_ah* address = sender.next(*handle);
    ASSERT_NE(address, nullptr);
    ASSERT_TRUE(post(pair, address));
    if (sender.outstanding() == 16) sender.completed(complete_sends(pair.get(), 8));
  };
  Tenant a = make_tenant(context, {.name = "a"});
  Tenant b = make_tenant(context, {.name = "b"});
  std::array<AhDirectory, 2> directories{std::move(*a.directory(1, options())), std::move(*b.directory(1, options()))};
  queue = std::move(*CompletionQueue::create(context, 1024));
  std::array<QueuePair, 2> pairs{std::move(*QueuePair::create_ud(a.domain(), queue, queue)),
                                 std::move(*QueuePair::create_ud(b.domain(), queue, queue))};
  std::array<AhSender, 2> senders{std::move(*directories[0].make_sender()), std::move(*directories[1].make_sender())};
  for (std::uint32_t peer = 2; peer < 1002; ++peer) {
    for (std::size_t i = 0; i < 2; ++i) rotate(directories[i], pairs[i], senders[i], peer);
  }
  EXPECT_LE(live().addresses, 64U);
  EXPECT_EQ(violations().sum(), 0U);
  for (std::size_t i = 0; i < 2; ++i) senders[i].completed(complete_sends(pairs[i].get(), 16));
}

TEST_F(Tenants, ACreationRatePacesItsOwnAndNobodyElse) {
  Tenant paced = make_tenant(context, {.name = "paced", .creations_per_second = 1, .creation_burst = 2});
  AhDirectory slow = std::move(*paced.directory(1, options()));
  AhDirectory fast = make_directory();
  std::vector<Destination> many;  // which takes longer than any test
  for (std::uint32_t peer = 2; peer < 102; ++peer) many.push_back(to(peer));
  EXPECT_EQ(slow.prewarm(many), many.size());
  const AhTicket last = slow.acquire_async(many.back());
  ASSERT_TRUE(eventually([&] { return slow.stats().paced >= 1; }));
  for (std::uint32_t peer = 2; peer < 50; ++peer) EXPECT_TRUE(fast.acquire(to(peer), soon()));
  EXPECT_TRUE(slow.close(soon()).rows.empty());  // does not wait for the rate
  EXPECT_FALSE(last.wait(soon()));
}

TEST_F(Tenants, RefusesOptionsThatMakeNoSenseInWords) {
  const auto refused = [this](TenantOptions options) {
    const Result<Tenant> tenant = Tenant::create(context, std::move(options));
    if (tenant) return std::string("made");
    EXPECT_EQ(tenant.error().code, ErrorCode::kInvalidArgument);
    return tenant.error().message;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused({.name = "", .creations_per_second = 5, .creation_burst = 0}), HasSubstr("creation_burst is 0"));
  EXPECT_THAT(refused({.name = "", .creations_per_second = 2'000'000'000}),
              HasSubstr("creations_per_second is 2000000000"));
  EXPECT_THAT(refused({.name = "", .max_memory = 10}), HasSubstr("max_memory is 10 bytes, and one destination takes"));
  EXPECT_THAT(refused({.name = "", .close_grace = std::chrono::nanoseconds(-1)}), HasSubstr("close_grace is -1 ns"));
  EXPECT_EQ(live().domains, 1U);  // the fixture's own
}

TEST_F(Tenants, AnyBurstLetsCreationsThrough) {
  Tenant tenant = make_tenant(
      context, {.name = "any", .creations_per_second = 1, .creation_burst = std::numeric_limits<std::uint64_t>::max()});
  AhDirectory directory = std::move(*tenant.directory(1, options()));
  for (std::uint32_t peer = 2; peer < 20; ++peer) ASSERT_TRUE(directory.acquire(to(peer), soon()));
}

// Called in the midst of the making of a directory: for each copy of its options.
struct CopiedRoutes {
  explicit CopiedRoutes(std::function<void()> what) : on_copy(std::move(what)) {}
  CopiedRoutes(const CopiedRoutes& other) : on_copy(other.on_copy) { on_copy(); }
  CopiedRoutes(CopiedRoutes&&) = default;
  Result<Route> operator()(const Gid& gid, std::uint32_t netdev) const { return usual_route(gid, netdev); }
  std::function<void()> on_copy;
};

TEST_F(Tenants, ItIsNotHeldUpByTheMakingOfADirectory) {
  Tenant tenant = make_tenant(context, {.name = "short"});
  bool armed = false;
  AhDirectoryOptions slow = options();
  slow.routes = CopiedRoutes([&] {
    if (std::exchange(armed, false)) tenant.close(Deadline::at({}));
  });
  armed = true;
  const Result<AhDirectory> directory = tenant.directory(1, std::move(slow));
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, ::testing::HasSubstr("tenant short is closed"));
  EXPECT_TRUE(tenant.close(soon()).complete());
}

TEST_F(Tenants, AClosedOneHasNoPartInTheDeviceAnyMore) {
  set_max_ah("fake0", 64);
  Tenant closed = make_tenant(context, {.name = "closed"});
  AhDirectory outlives = std::move(*closed.directory(1, options()));
  const Tenant open = make_tenant(context, {.name = "open"});
  EXPECT_EQ(open.usage().share, 32U);
  EXPECT_TRUE(closed.close(soon()).complete());
  EXPECT_EQ(open.usage().share, 64U);
}

TEST_F(Tenants, WhoWaitsForTheRateDoesNotHoldUpWhatIsStale) {
  Tenant paced = make_tenant(context, {.name = "paced", .creations_per_second = 1, .creation_burst = 1});
  AhDirectoryOptions one_thread = options();
  one_thread.creators = 1;
  one_thread.watch_async_events = false;
  AhDirectory directory = std::move(*paced.directory(1, one_thread));
  const AhHandle held = *directory.acquire(to(2), soon());
  std::vector<Destination> many;
  for (std::uint32_t peer = 10; peer < 510; ++peer) many.push_back(to(peer));
  EXPECT_EQ(directory.prewarm(many), many.size());
  set_gids("fake0", 1, {{}, {}, {}, {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}});
  const ibv_async_event event = event_of(IBV_EVENT_GID_CHANGE);
  directory.on_async_event(event);
  ASSERT_TRUE(eventually([&] { return directory.stats().stale_gid == 1; }));
  EXPECT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_EQ(directory.effective(held)->source.index, 3U);
  EXPECT_GT(directory.stats().pending, 400U);
}

TEST_F(Tenants, CreationsThatWaitedForTheRateAreMade) {
  Tenant paced = make_tenant(context, {.name = "paced", .creations_per_second = 50, .creation_burst = 1});
  AhDirectory directory = std::move(*paced.directory(1, options()));
  std::vector<Destination> many;
  for (std::uint32_t peer = 2; peer < 22; ++peer) many.push_back(to(peer));
  directory.prewarm(many);
  for (const Destination& destination : many) EXPECT_TRUE(directory.acquire(destination, soon()));
  EXPECT_EQ(creations(), many.size());
  EXPECT_EQ(directory.stats().failed, 0U);
}

Tenant taken_from(Tenant& owner) {
  return std::move(owner);
}

TEST_F(Tenants, AnEmptyOneHasNothing) {
  Tenant moved_from = make_tenant(context, {.name = "moved"});
  const Tenant moved_to = taken_from(moved_from);
  Tenant never;
  for (Tenant* tenant : {&moved_from, &never}) {
    EXPECT_EQ(tenant->name(), "");
    EXPECT_FALSE(tenant->domain());
    EXPECT_EQ(tenant->usage().memory, 0U);
    const Result<AhDirectory> refused = tenant->directory(1, options());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    const TenantRelease released = tenant->close(soon());
    EXPECT_TRUE(released.complete());
    EXPECT_EQ(released.directories, 0U);
  }
  const Result<Tenant> of_nothing = Tenant::create(Context(), {.name = "nobody's"});
  ASSERT_FALSE(of_nothing);
  EXPECT_EQ(of_nothing.error().code, ErrorCode::kInvalidArgument);
}

TEST(TokenBucket, GivesABurstAndThenTheRate) {
  ah::TokenBucket bucket(10, 3);
  std::int64_t now = 5'000'000'000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(now), 0);
  EXPECT_EQ(bucket.take(now), 100'000'000);
  EXPECT_EQ(bucket.take(now + 60'000'000), 40'000'000);
  now += 100'000'000;
  EXPECT_EQ(bucket.take(now), 0);
  EXPECT_NE(bucket.take(now), 0);
  now += 10'000'000'000;  // full again, and no fuller
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(now), 0);
  EXPECT_NE(bucket.take(now), 0);
}

TEST(TokenBucket, TakesTheLargestValuesForWhatTheyMean) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t kLate = std::numeric_limits<std::int64_t>::max() / 4;
  for (const std::uint64_t rate : {std::uint64_t{1}, std::uint64_t{3}, kLargest}) {
    ah::TokenBucket bucket(rate, kLargest);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(bucket.take(0), 0) << rate;
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(bucket.take(kLate), 0) << rate;
  }
}

TEST(TokenBucket, WithoutARateGivesAlways) {
  ah::TokenBucket bucket(0, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(bucket.take(0), 0);
}

}  // namespace
}  // namespace verbena::fake
