#include <cerrno>
#include <latch>
#include <memory>
#include <vector>

#include <fake_verbs/ah_world.h>

#include "verbena/release_failure.h"

namespace verbena::fake {
namespace {

using Lifetime = AhWorld;

TEST_F(Lifetime, ASenderFindsWhatIsReadyAndNothingElse) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  EXPECT_EQ(sender.next(to(2)), nullptr);
  const AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* address = sender.next(to(2));
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(sender.next(handle), address);
  EXPECT_EQ(sender.position(), 2U);
  EXPECT_EQ(sender.outstanding(), 2U);
  const AhStats stats = directory.stats();
  EXPECT_EQ(stats.hits, 2U);
  EXPECT_EQ(stats.misses, 2U);  // the sender's, and the acquisition's
  EXPECT_EQ(stats.in_flight, 2U);
  sender.drained();
}

TEST_F(Lifetime, ASenderTakesNoHandleOfAnotherDirectory) {
  AhDirectory directory = make_directory();
  AhDirectory other = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle foreign = *other.acquire(to(2), soon());
  EXPECT_EQ(sender.next(foreign), nullptr);
  EXPECT_EQ(sender.next(AhHandle()), nullptr);
  EXPECT_EQ(sender.position(), 0U);
}

TEST_F(Lifetime, OneCompletionCoversAllBeforeIt) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  for (int i = 0; i < 10; ++i) ASSERT_NE(sender.next(handle), nullptr);
  sender.completed_through(7);
  EXPECT_EQ(sender.outstanding(), 3U);
  sender.completed_through(5);  // older news
  EXPECT_EQ(sender.outstanding(), 3U);
  sender.completed(2);
  EXPECT_EQ(sender.outstanding(), 1U);
  sender.retract(1);
  EXPECT_EQ(sender.outstanding(), 0U);
  EXPECT_EQ(directory.stats().misused, 0U);
  sender.completed(1);
  EXPECT_EQ(directory.stats().misused, 1U);
  sender.retract(1);
  EXPECT_EQ(directory.stats().misused, 2U);
}

AhDirectoryOptions with_entries(AhDirectoryOptions options, std::size_t entries) {
  options.max_entries = entries;
  return options;
}

TEST_F(Lifetime, AnAddressInFlightOutlivesItsHandlesAndItsPlace) {
  AhDirectory directory = make_directory(with_entries(options(), 1));
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ibv_ah* address = sender.next(to(2));
  ASSERT_TRUE(post(pair, address));
  const Result<AhHandle> refused = directory.acquire(to(3), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_FALSE(is_destroyed(address));
  complete_sends(pair.get(), 1);
  sender.completed(1);
  EXPECT_TRUE(directory.acquire(to(3), soon()));
  EXPECT_TRUE(is_destroyed(address));
}

TEST_F(Lifetime, AHandleHoldsItsDestinationUnderPressure) {
  AhDirectory directory = make_directory(with_entries(options(), 1));
  AhHandle held = *directory.acquire(to(2), soon());
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  const AhHandle copy = held;
  held = AhHandle();
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().handles, 1U);
  EXPECT_EQ(destructions(), 0U);
}

TEST_F(Lifetime, DroppingTheLastHandleCallsNothingOnTheDevice) {
  AhDirectory directory = make_directory();
  { const AhHandle handle = *directory.acquire(to(2), soon()); }
  EXPECT_EQ(destructions(), 0U);
  EXPECT_EQ(directory.stats().live, 1U);
}

TEST_F(Lifetime, ARetractedSendHoldsNothingBack) {
  AhDirectory directory = make_directory(with_entries(options(), 1));
  AhSender sender = std::move(*directory.make_sender());
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ASSERT_NE(sender.next(to(2)), nullptr);
  sender.retract(1);
  EXPECT_TRUE(directory.acquire(to(3), soon()));
}

TEST_F(Lifetime, ARetractedSendDoesNotHideAnEarlierOne) {
  AhDirectory directory = make_directory(with_entries(options(), 1));
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ibv_ah* address = sender.next(to(2));
  ASSERT_TRUE(post(pair, address));
  ASSERT_EQ(sender.next(to(2)), address);
  sender.retract(1);
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = ipv4(2)});
  EXPECT_FALSE(directory.close(Deadline::at({})).empty());
  EXPECT_FALSE(is_destroyed(address));
  complete_sends(pair.get(), 1);
  sender.completed(1);
  EXPECT_TRUE(directory.close(soon()).empty());
  EXPECT_TRUE(is_destroyed(address));
}

TEST_F(Lifetime, ALeaseKeepsOneAddressThroughItsReplacement) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  AhLease lease = std::move(*handle.lease());
  EXPECT_FALSE(lease.superseded());
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = ipv4(2)});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  EXPECT_TRUE(lease.superseded());
  EXPECT_FALSE(is_destroyed(lease.get()));
  EXPECT_NE(handle.lease()->get(), lease.get());
  ibv_ah* old = lease.get();
  lease = AhLease();
  EXPECT_TRUE(eventually([&] { return is_destroyed(old); }));
}

TEST_F(Lifetime, CloseGivesEverythingBack) {
  {
    AhDirectory directory = make_directory();
    for (std::uint32_t i = 2; i < 100; ++i) ASSERT_TRUE(directory.acquire(to(i), soon()));
    EXPECT_TRUE(directory.close(soon()).empty());
    EXPECT_EQ(live().addresses, 0U);
    const Result<AhHandle> late = directory.acquire(to(2), soon());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(directory.make_sender());
  }
  EXPECT_TRUE(domain.close());
}

TEST_F(Lifetime, CloseWaitsForWorkInFlightAndSaysWhatIsLeft) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  AhHandle handle = *directory.acquire(to(2), soon());
  ibv_ah* address = sender.next(handle);
  ASSERT_TRUE(post(pair, address));
  AhLeftover left = directory.close(Deadline::at({}));
  ASSERT_EQ(left.rows.size(), 1U);
  EXPECT_TRUE(left.rows[0].in_flight);
  EXPECT_EQ(left.rows[0].destination.gid, ipv4(2));
  EXPECT_EQ(left.handles, 1U);
  EXPECT_FALSE(is_destroyed(address));
  EXPECT_EQ(sender.next(handle), nullptr);
  complete_sends(pair.get(), 1);
  sender.completed(1);
  left = directory.close(soon());
  EXPECT_TRUE(left.rows.empty());
  EXPECT_TRUE(is_destroyed(address));
}

TEST_F(Lifetime, DestroyingWithWorkInFlightReportsInsteadOfFreeing) {
  std::string reported;
  set_release_failure_handler([&](const Error& error) { reported += error.message; });
  QueuePair pair = make_pair();
  {
    AhDirectory directory = make_directory();
    AhSender sender = std::move(*directory.make_sender());
    ASSERT_TRUE(directory.acquire(to(2), soon()));
    ASSERT_TRUE(post(pair, sender.next(to(2))));
  }
  set_release_failure_handler({});
  EXPECT_THAT(reported, ::testing::HasSubstr("10.0.0.2"));
  EXPECT_THAT(reported, ::testing::HasSubstr("work in flight"));
  EXPECT_EQ(live().addresses, 1U);
  EXPECT_EQ(violations().sum(), 0U);
}

TEST_F(Lifetime, HandlesAndSendersMayOutliveTheDirectory) {
  AhHandle handle;
  AhSender sender;
  {
    AhDirectory directory = make_directory();
    handle = *directory.acquire(to(2), soon());
    sender = std::move(*directory.make_sender());
  }
  EXPECT_EQ(sender.next(handle), nullptr);
  EXPECT_EQ(sender.next(to(2)), nullptr);
  EXPECT_EQ(handle.destination().gid, ipv4(2));
  EXPECT_FALSE(handle.lease());
  EXPECT_EQ(live().addresses, 0U);
}

TEST_F(Lifetime, CloseAnswersThoseWhoWait) {
  AhDirectory directory = make_directory();
  std::latch go(1);
  set_create_hook([&](const ibv_ah_attr&) {
    go.wait();
    return 0;
  });
  const AhTicket ticket = directory.acquire_async(to(2));
  ASSERT_TRUE(eventually([] { return attempts() == 1; }));
  const AhLeftover left = directory.close(Deadline::at({}));
  EXPECT_EQ(left.rows.size(), 1U);  // its creation is still under way
  const Result<AhHandle> result = ticket.wait(soon());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  go.count_down();
  EXPECT_TRUE(directory.close(soon()).rows.empty());
  EXPECT_EQ(live().addresses, 0U);
}

TEST_F(Lifetime, ADeviceThatRefusesToDestroyIsNamed) {
  AhDirectory directory = make_directory();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  fail_call("ibv_destroy_ah", EBUSY);
  const AhLeftover left = directory.close(Deadline::in(std::chrono::milliseconds(5)));
  ASSERT_EQ(left.rows.size(), 1U);
  EXPECT_THAT(left.rows[0].last_error, ::testing::HasSubstr("ibv_destroy_ah of ::ffff:10.0.0.2"));
  EXPECT_THAT(left.rows[0].last_error, ::testing::HasSubstr("EBUSY"));
  fail_call("ibv_destroy_ah", 0);
  EXPECT_TRUE(directory.close(soon()).empty());
}

TEST_F(Lifetime, WhatTheDeviceSaysOfOneAddressIsNotSaidOfAnother) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ASSERT_TRUE(directory.acquire(to(3), soon()));
  ASSERT_NE(sender.next(to(3)), nullptr);
  fail_call("ibv_destroy_ah", EBUSY);
  const AhLeftover left = directory.close(Deadline::in(std::chrono::milliseconds(5)));
  ASSERT_EQ(left.rows.size(), 2U);
  for (const AhRow& row : left.rows) {
    const bool in_flight = row.destination.gid == ipv4(3);
    EXPECT_EQ(row.in_flight, in_flight);
    EXPECT_EQ(row.last_error.empty(), in_flight) << row.last_error;
  }
  sender.drained();
  fail_call("ibv_destroy_ah", 0);
  EXPECT_TRUE(directory.close(soon()).empty());
}

TEST_F(Lifetime, ASenderThatIsDroppedWithWorkInFlightHoldsItBack) {
  AhDirectory directory = make_directory(with_entries(options(), 1));
  QueuePair pair = make_pair();
  {
    AhSender sender = std::move(*directory.make_sender());
    ASSERT_TRUE(directory.acquire(to(2), soon()));
    ASSERT_TRUE(post(pair, sender.next(to(2))));
  }
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  EXPECT_EQ(directory.stats().in_flight, 1U);
  set_release_failure_handler([](const Error&) {});
  directory = AhDirectory();
  set_release_failure_handler({});
}

TEST_F(Lifetime, ATicketMayBeOverwrittenAfterItsDirectory) {
  AhTicket moved_over;
  AhTicket copied_over;
  const AhTicket empty;
  {
    AhDirectory directory = make_directory();
    moved_over = directory.acquire_async(to(2));
    ASSERT_TRUE(moved_over.wait(soon()));
  }
  moved_over = AhTicket();
  {
    AhDirectory directory = make_directory();
    copied_over = directory.acquire_async(to(2));
    ASSERT_TRUE(copied_over.wait(soon()));
  }
  copied_over = empty;
  EXPECT_FALSE(moved_over.ready());
  EXPECT_FALSE(copied_over.ready());
  EXPECT_EQ(live().addresses, 0U);
}

TEST_F(Lifetime, ALeaseThatOutlivesTheDirectoryGivesItsAddressBack) {
  set_release_failure_handler([](const Error&) {});
  AhLease lease;
  {
    AhDirectory directory = make_directory();
    const AhHandle handle = *directory.acquire(to(2), soon());
    lease = std::move(*handle.lease());
  }
  set_release_failure_handler({});
  EXPECT_EQ(live().addresses, 1U);
  lease = AhLease();
  EXPECT_EQ(live().addresses, 0U);
}

TEST_F(Lifetime, AnEmptySenderFindsNothing) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  AhSender sender;
  EXPECT_EQ(sender.next(to(2)), nullptr);
  EXPECT_EQ(sender.next(handle), nullptr);
  EXPECT_EQ(sender.next(AhHandle()), nullptr);
  sender.retract(1);
  sender.completed(1);
  sender.completed_through(1);
  sender.drained();
  EXPECT_EQ(sender.position(), 0U);
  EXPECT_EQ(sender.outstanding(), 0U);
}

TEST_F(Lifetime, HitsOfSendersThatAreGoneStayCounted) {
  AhDirectory directory = make_directory();
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  {
    AhSender sender = std::move(*directory.make_sender());
    ASSERT_NE(sender.next(to(2)), nullptr);
    EXPECT_EQ(sender.next(to(3)), nullptr);
    sender.completed(1);
  }
  EXPECT_EQ(directory.stats().hits, 1U);
  EXPECT_EQ(directory.stats().misses, 2U);
}

// Whoever else keeps what is behind it, be it another directory that was asking it for room.
TEST_F(Lifetime, ADirectoryThatLeavesNothingLetsGoOfTheDomainAlthoughAHandleOutlivesIt) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory = AhDirectory();
  const Status closed = domain.close();
  EXPECT_TRUE(closed) << closed.error().message;
  EXPECT_EQ(live().domains, 0U);
}

TEST_F(Lifetime, TimesThatMeanForEverAreTakenAndNegativeOnesRefusedInWords) {
  const auto with = [this](std::chrono::nanoseconds AhDirectoryOptions::*which, std::chrono::nanoseconds value) {
    AhDirectoryOptions odd = options();
    odd.*which = value;
    return AhDirectory::create(domain, 1, odd);
  };
  using Options = AhDirectoryOptions;
  constexpr auto kForEver = std::chrono::nanoseconds::max();
  const std::vector<std::pair<std::string, std::chrono::nanoseconds Options::*>> times{
      {"idle_age", &Options::idle_age},           {"first_back_off", &Options::first_back_off},
      {"max_back_off", &Options::max_back_off},   {"close_grace", &Options::close_grace},
      {"leak_age", &Options::leak_age},           {"max_age", &Options::max_age},
      {"forgotten_age", &Options::forgotten_age}, {"device_lag", &Options::device_lag}};
  for (const auto& [name, which] : times) {
    const Result<AhDirectory> negative = with(which, std::chrono::nanoseconds(-1));
    ASSERT_FALSE(negative) << name;
    EXPECT_EQ(negative.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(negative.error().message, ::testing::HasSubstr(name + " is -1 ns"));
  }
  EXPECT_THAT(with(&Options::device_lag, kForEver).error().message, ::testing::HasSubstr("device_lag is"));
  EXPECT_THAT(with(&Options::max_back_off, {}).error().message, ::testing::HasSubstr("below first_back_off"));
  AhDirectoryOptions longest = options();
  for (const auto& [name, which] : times) {
    if (name != "device_lag") longest.*which = kForEver;
  }
  AhDirectory directory = make_directory(longest);
  set_create_hook([](const ibv_ah_attr&) { return EHOSTUNREACH; });
  EXPECT_FALSE(directory.acquire(to(3), soon()));
  set_create_hook({});
  const Result<AhHandle> remembered = directory.acquire(to(3), soon());
  ASSERT_FALSE(remembered) << "the back-off is over at once";
  EXPECT_THAT(remembered.error().message, ::testing::HasSubstr("failed 1 time(s)"));
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  EXPECT_FALSE(directory.find(to(2)).empty());
  EXPECT_EQ(directory.stats().replaced, 0U);
  directory = AhDirectory();
  EXPECT_EQ(live().addresses, 0U);
}

}  // namespace
}  // namespace verbena::fake
