// A tenant's memory: what is full gives room, and what is refused is refused in true words.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include <fake_verbs/ah_world.h>

#include "ah/arbiter.h"
#include "verbena/tenant.h"

namespace verbena::fake {
namespace {

constexpr std::size_t kThin = 12'000;
constexpr std::uint32_t kMany = 100;  // more than fit

class MemoryBudget : public AhWorld {
 protected:
  MemoryBudget() : tenant(std::move(*Tenant::create(context, {.name = "thin", .max_memory = kThin}))) {
    first = make(1);
  }

  AhDirectory make(std::uint8_t port, AhDirectoryOptions with = options()) {
    with.max_entries = 64;
    return std::move(*tenant.directory(port, std::move(with)));
  }

  static void fail_beyond(std::uint32_t peer) {
    const Gid last = ipv4(peer);
    set_create_hook([last](const ibv_ah_attr& attributes) {
      Gid gid;
      std::copy_n(attributes.grh.dgid.raw, gid.bytes.size(), gid.bytes.begin());
      return gid.bytes > last.bytes ? EHOSTUNREACH : 0;
    });
  }

  Tenant tenant;
  AhDirectory first;
};

TEST_F(MemoryBudget, IdleDestinationsGiveWayToTheFirstWhoAsks) {
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) {
    const Result<AhHandle> handle = first.acquire(to(peer), soon());
    ASSERT_TRUE(handle) << handle.error().message;
    EXPECT_LE(tenant.usage().memory, kThin);
  }
  EXPECT_GT(first.stats().reclaimed_pressure, 10U);
}

TEST_F(MemoryBudget, SoDoThoseThatFailed) {
  fail_beyond(1000);
  for (std::uint32_t peer = 2000; peer < 2000 + kMany; ++peer) {
    const Result<AhHandle> failed = first.acquire(to(peer), soon());
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().code, ErrorCode::kExhausted) << failed.error().message;
  }
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) {
    const Result<AhHandle> handle = first.acquire(to(peer), soon());
    ASSERT_TRUE(handle) << handle.error().message;
  }
  EXPECT_LE(tenant.usage().memory, kThin);
}

TEST_F(MemoryBudget, SoDoesTheOtherDirectoryOfTheTenant) {
  AhDirectory second = make(2);
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) {
    const Result<AhHandle> handle = second.acquire(to(peer), soon());
    ASSERT_TRUE(handle) << handle.error().message;
  }
  fail_beyond(1000);
  for (std::uint32_t peer = 2000; peer < 2000 + kMany; ++peer) ASSERT_FALSE(first.acquire(to(peer), soon()));
  EXPECT_TRUE(second.acquire(to(900), soon()));
  EXPECT_LE(tenant.usage().memory, kThin);
}

TEST_F(MemoryBudget, WhatIsAllHeldIsRefusedInTrueWordsAndServesAgain) {
  std::vector<AhHandle> held;
  Result<AhHandle> last = first.acquire(to(2), soon());
  for (std::uint32_t peer = 3; last && peer < 2 + kMany; ++peer) {
    held.push_back(std::move(*last));
    last = first.acquire(to(peer), soon());
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(last.error().message, ::testing::HasSubstr("in the memory of the tenant thin"));
  EXPECT_THAT(last.error().message, ::testing::HasSubstr("max_memory (now 12000 bytes)"));
  EXPECT_EQ(first.stats().refused, 1U);
  // Those who are refused leave nothing behind that counts.
  const std::size_t used = tenant.usage().memory;
  for (std::uint32_t peer = 300; peer < 310; ++peer) EXPECT_FALSE(first.acquire(to(peer), soon()));
  EXPECT_LE(tenant.usage().memory, used);
  held.pop_back();
  EXPECT_TRUE(first.acquire(to(200), soon()));
}

TEST_F(MemoryBudget, ManyWhoAskAtOnceOfAFullOneAreBounded) {
  std::vector<AhHandle> held;
  for (std::uint32_t peer = 2; tenant.usage().memory + 500 < kThin; ++peer) {
    held.push_back(std::move(*first.acquire(to(peer), soon())));
  }
  std::vector<AhTicket> tickets;
  for (std::uint32_t peer = 1000; peer < 3000; ++peer) tickets.push_back(first.acquire_async(to(peer)));
  EXPECT_LE(first.rows().size(), held.size() + 80);
  EXPECT_TRUE(first.close(soon()).rows.empty());
  tickets.clear();
  held.clear();
  first = AhDirectory();
  EXPECT_EQ(tenant.usage().memory, 0U);
}

TEST_F(MemoryBudget, ASenderFindsRoomWhereThereIsSomethingIdle) {
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  const Result<AhSender> sender = first.make_sender();
  EXPECT_TRUE(sender) << sender.error().message;
  EXPECT_LE(tenant.usage().memory, kThin);
}

TEST_F(MemoryBudget, ASenderFindsItInTheOtherDirectoryOfTheTenantToo) {
  AhDirectory second = make(2);
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  const Result<AhSender> sender = second.make_sender();
  EXPECT_TRUE(sender) << sender.error().message;
  EXPECT_LE(tenant.usage().memory, kThin);
}

TEST_F(MemoryBudget, ASenderThatCanNeverFitDrivesNobodyOut) {
  for (std::uint32_t peer = 2; peer < 2 + kMany; ++peer) ASSERT_TRUE(first.acquire(to(peer), soon()));
  const std::uint64_t live = first.stats().live;
  AhDirectoryOptions many = options();
  many.max_entries = 1 + kThin / sizeof(std::uint64_t);
  AhDirectory large = std::move(*tenant.directory(2, many));
  const Result<AhSender> sender = large.make_sender();
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(sender.error().message, ::testing::HasSubstr("12000"));
  EXPECT_EQ(first.stats().live, live);
}

// It waits for room that nobody gives, and the other directory tells that it has begun.
TEST_F(MemoryBudget, ASenderThatWaitsWhileItsDirectoryClosesIsToldSo) {
  AhDirectory second = make(2);
  ASSERT_TRUE(second.acquire(to(2), soon()));
  std::vector<AhHandle> held;
  for (std::uint32_t peer = 2; tenant.usage().memory + 256 <= kThin; ++peer) {
    held.push_back(*first.acquire(to(peer), soon()));
  }
  ASSERT_TRUE(second.subscribe([&](const AhEvent& event) {
    if (event.kind == AhEvent::Kind::kEvicted) first.close(Deadline::at({}));
  }));
  const Result<AhSender> sender = first.make_sender();
  ASSERT_FALSE(sender);
  EXPECT_EQ(sender.error().code, ErrorCode::kUnavailable) << sender.error().message;
}

TEST(Account, WhatIsRefusedTakesNoRoomFromWhatFits) {
  ah::Account account("thin", {.max_memory = kThin});
  std::atomic<int> asked = 0;
  std::thread greedy([&] {
    for (; asked < 3'000'000; ++asked) EXPECT_FALSE(account.charge_memory(kThin + 1));
  });
  int refused = 0;
  while (asked < 3'000'000) {
    if (account.charge_memory(256)) {
      account.release_memory(256);
    } else {
      ++refused;
    }
  }
  greedy.join();
  EXPECT_EQ(refused, 0);
}

TEST_F(MemoryBudget, WhatFailedAndNobodyAsksForAnyMoreGoes) {
  AhDirectoryOptions brief = options();
  brief.idle_age = std::chrono::milliseconds(1);
  brief.first_back_off = brief.max_back_off = std::chrono::milliseconds(1);
  fail_beyond(1000);
  AhDirectory second = make(2, brief);
  for (std::uint32_t peer = 2000; peer < 2010; ++peer) ASSERT_FALSE(second.acquire(to(peer), soon()));
  EXPECT_TRUE(eventually([&] { return second.rows().empty() && tenant.usage().memory == 0; }));
}

}  // namespace
}  // namespace verbena::fake
