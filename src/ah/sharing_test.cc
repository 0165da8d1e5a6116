// Who gives when there is no room, and that who waits for room neither hammers the device nor waits for ever.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <fake_verbs/ah_world.h>

#include "ah/arbiter.h"
#include "verbena/tenant.h"

namespace verbena::fake {
namespace {

using Sharing = AhWorld;

Tenant make_tenant(const Context& context, TenantOptions options) {
  return std::move(*Tenant::create(context, std::move(options)));
}

std::vector<AhHandle> hold(AhDirectory& directory, std::uint32_t first, std::uint32_t count) {
  std::vector<AhHandle> held;
  for (std::uint32_t peer = first; peer < first + count; ++peer) {
    Result<AhHandle> handle = directory.acquire(to(peer), soon());
    EXPECT_TRUE(handle) << handle.error().message;
    if (handle) held.push_back(std::move(*handle));
  }
  return held;
}

void use(AhDirectory& directory, std::uint32_t first, std::uint32_t count) {
  hold(directory, first, count);
}

// A device that holds fewer than it says.
void fill_secretly(int holds) {
  set_max_ah("fake0", holds);
  set_advertised_max_ah("fake0", 1 << 20);
}

TEST_F(Sharing, TwoWhoWaitForAFullDeviceAreNoRoomForEachOther) {
  fill_secretly(4);
  AhDirectory directory = make_directory();
  const std::vector<AhHandle> held = hold(directory, 2, 4);
  const std::uint64_t before = attempts();
  const AhTicket first = directory.acquire_async(to(10));
  const AhTicket second = directory.acquire_async(to(11));
  for (const AhTicket* ticket : {&first, &second}) {
    const Result<AhHandle> refused = ticket->wait(soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  }
  EXPECT_LE(attempts() - before, 4U);
}

TEST_F(Sharing, NorAreTwoOfDifferentDirectories) {
  fill_secretly(4);
  AhDirectory one = make_directory();
  AhDirectory other = make_directory();
  const std::vector<AhHandle> held = hold(one, 2, 2);
  const std::vector<AhHandle> more = hold(other, 2, 2);
  const std::uint64_t before = attempts();
  const AhTicket first = one.acquire_async(to(10));
  const AhTicket second = other.acquire_async(to(11));
  for (const AhTicket* ticket : {&first, &second}) {
    const Result<AhHandle> refused = ticket->wait(soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  }
  EXPECT_LE(attempts() - before, 4U);
}

TEST_F(Sharing, WhoHoldsOnToAllIsPassedOverForTheNextOverItsShare) {
  set_max_ah("fake0", 64);
  Tenant a = make_tenant(context, {.name = "a"});
  Tenant b = make_tenant(context, {.name = "b"});
  AhDirectory of_a = std::move(*a.directory(1, options()));
  AhDirectory of_b = std::move(*b.directory(1, options()));
  use(of_b, 2, 30);
  const std::vector<AhHandle> held = hold(of_a, 2, 34);
  Tenant c = make_tenant(context, {.name = "c"});
  AhDirectory of_c = std::move(*c.directory(1, options()));
  const std::vector<AhHandle> of_late = hold(of_c, 2, 9);
  EXPECT_EQ(of_late.size(), 9U);
  EXPECT_EQ(a.usage().handles, 34U);
  EXPECT_EQ(b.usage().handles, 21U);
  // Now b has no more than its share, and what it has idle is its own.
  const Result<AhHandle> refused = of_c.acquire(to(100), soon());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("nobody over its share has an idle one"));
}

TEST_F(Sharing, ABudgetIsOneForAllDirectoriesOfTheTenant) {
  Tenant tenant = make_tenant(context, {.name = "small", .max_handles = 8});
  AhDirectory first = std::move(*tenant.directory(1, options()));
  AhDirectory second = std::move(*tenant.directory(2, options()));
  use(first, 2, 8);
  EXPECT_EQ(hold(second, 2, 8).size(), 8U);
  EXPECT_EQ(tenant.usage().handles, 8U);
  EXPECT_EQ(first.stats().reclaimed_pressure, 8U);
  EXPECT_EQ(first.stats().reclaimed_share, 0U);
}

TEST_F(Sharing, AFullDeviceTakesFromTheOtherDirectoryOfTheTenant) {
  set_max_ah("fake0", 8);
  Tenant tenant = make_tenant(context, {.name = "alone"});
  AhDirectory first = std::move(*tenant.directory(1, options()));
  AhDirectory second = std::move(*tenant.directory(2, options()));
  use(first, 2, 8);
  EXPECT_EQ(hold(second, 2, 8).size(), 8U);
}

TEST_F(Sharing, ADeviceThatRefusesTakesFromTheOtherDirectoryOfTheTenant) {
  fill_secretly(8);
  Tenant tenant = make_tenant(context, {.name = "alone"});
  AhDirectory first = std::move(*tenant.directory(1, options()));
  AhDirectory second = std::move(*tenant.directory(2, options()));
  use(first, 2, 8);
  EXPECT_EQ(hold(second, 2, 8).size(), 8U);
}

TEST_F(Sharing, OfTwoDirectoriesTheLongerIdleGives) {
  Tenant tenant = make_tenant(context, {.name = "small", .max_handles = 8});
  AhDirectory first = std::move(*tenant.directory(1, options()));
  AhDirectory second = std::move(*tenant.directory(2, options()));
  use(first, 2, 4);
  use(second, 2, 4);
  use(second, 100, 4);
  EXPECT_EQ(first.stats().live, 0U);
  EXPECT_EQ(second.stats().live, 8U);
  use(second, 200, 1);
  EXPECT_TRUE(second.find(to(2)).empty());
  EXPECT_FALSE(second.find(to(100)).empty());
}

TEST_F(Sharing, WhoseRoomIsTakenWaitsBeforeOthersAreAskedAgain) {
  set_max_ah("fake0", 8);
  AhDirectory directory = make_directory();
  const std::shared_ptr<ah::Arbiter> arbiter = ah::Arbiter::of(context.get(), 8)->arbiter;
  const auto robbed = std::make_shared<ah::Account>("robbed", ah::AccountLimits{});
  for (int i = 0; i < 8; ++i) ASSERT_EQ(arbiter->take(*robbed), ah::Grant::kGranted);
  std::atomic<std::size_t> asked{0};
  // It gives, and somebody else has it before who asked.
  arbiter->join(robbed, robbed.get(), [&](const ah::Arbiter::Call& call) {
    asked += call.most;
    return std::size_t{1};
  });
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_GE(asked, 1U);
  EXPECT_LE(asked, 400U);
  arbiter->leave(robbed.get());
}

TEST_F(Sharing, WhatGivesWayToItsOwnReplacementIsToldAsGone) {
  set_max_ah("fake0", 1);
  AhDirectory directory = make_directory();
  std::mutex mutex;
  std::vector<AhEvent> heard;
  ASSERT_TRUE(directory.subscribe([&](const AhEvent& event) {
    const std::lock_guard lock(mutex);
    heard.push_back(event);
  }));
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = std::nullopt});
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return heard.size() >= 4;
  }));
  using Kind = AhEvent::Kind;
  const std::array expected{Kind::kReady, Kind::kStale, Kind::kGone, Kind::kReady};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(heard[i].kind, expected[i]) << i;
  EXPECT_EQ(heard[2].cause, AhCause::kPressure);
}

TEST(Arbiter, AsksFromTheLargestDownUntilSomethingIsGiven) {
  ah::Arbiter arbiter(64);
  std::vector<std::string> asked;
  std::vector<std::shared_ptr<ah::Account>> accounts;
  const auto join = [&](const char* name, std::size_t takes, std::size_t gives) {
    auto account = std::make_shared<ah::Account>(name, ah::AccountLimits{});
    arbiter.join(account, account.get(), [&asked, name, gives](const ah::Arbiter::Call& call) {
      asked.emplace_back(name);
      return std::min(call.most, gives);
    });
    for (std::size_t i = 0; i < takes; ++i) EXPECT_EQ(arbiter.take(*account), ah::Grant::kGranted);
    accounts.push_back(account);
    return account;
  };
  join("small", 4, 9);
  join("large", 26, 0);
  join("middle", 22, 3);
  const std::shared_ptr<ah::Account> asker = join("asker", 2, 9);
  EXPECT_EQ(arbiter.make_others_give(*asker, 8, false), 3U);
  EXPECT_EQ(asked, (std::vector<std::string>{"large", "middle"}));
}

TEST(Arbiter, CountsAsReleasedWhatWasDestroyedAndNoReservationThatFailed) {
  ah::Arbiter arbiter(8);
  const auto account = std::make_shared<ah::Account>("one", ah::AccountLimits{});
  arbiter.join(account, account.get(), {});
  ASSERT_EQ(arbiter.take(*account), ah::Grant::kGranted);
  ASSERT_EQ(arbiter.take(*account), ah::Grant::kGranted);
  arbiter.cancel(*account);
  EXPECT_EQ(arbiter.released(), 0U);
  EXPECT_EQ(arbiter.used(*account), 1U);
  arbiter.give_back(*account, 1);
  EXPECT_EQ(arbiter.released(), 1U);
}

TEST(Arbiter, IsOfAContextForAsLongAsSomebodyHasItsSeat) {
  ibv_context context{};
  std::shared_ptr<const ah::Seat> first = ah::Arbiter::of(&context, 8);
  EXPECT_EQ(ah::Arbiter::of(&context, 8)->arbiter, first->arbiter);
  const auto account = std::make_shared<ah::Account>("left behind", ah::AccountLimits{});
  const std::shared_ptr<ah::Arbiter> kept = first->arbiter;
  kept->join(account, account.get(), {});
  ASSERT_EQ(kept->take(*account), ah::Grant::kGranted);
  kept->leave(account.get());
  first.reset();
  const std::shared_ptr<const ah::Seat> next = ah::Arbiter::of(&context, 100);
  EXPECT_NE(next->arbiter, kept);
  EXPECT_EQ(next->arbiter->share(), 100U);
}

}  // namespace
}  // namespace verbena::fake
