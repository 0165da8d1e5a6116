// Who holds on, and the place that is named: on demand, at a close, and when nobody can be asked any more.
#include <string>
#include <utility>
#include <vector>

#include <fake_verbs/ah_world.h>
#include <fmt/format.h>

#include "verbena/release_failure.h"
#include "verbena/tenant.h"

namespace verbena::fake {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::nanoseconds kAny{0};

class Leaks : public AhWorld {
 protected:
  Leaks() {
    set_release_failure_handler([this](const Error& error) { reported += error.message + "\n"; });
  }
  ~Leaks() override { set_release_failure_handler({}); }

  std::string reported;
};

std::string here(CallSite place = CallSite::current()) {
  return fmt::format("leaks_test.cc:{}, in ", place.line());
}

TEST_F(Leaks, NamesThePlaceThatTookAHandle) {
  AhDirectory directory = make_directory();
  EXPECT_TRUE(directory.leaks(kAny).empty());
  const AhHandle first = *directory.acquire(to(2), soon());
  const std::uint32_t line = CallSite::current().line() - 1;
  const AhHandle copy = first;  // NOLINT(performance-unnecessary-copy-initialization): what is held
  const AhHandle found = directory.find(to(2));
  const std::vector<AhHolding> held = directory.leaks(kAny);
  ASSERT_EQ(held.size(), 2U);
  const AhHolding& two = held[0].count == 2 ? held[0] : held[1];
  const AhHolding& one = held[0].count == 2 ? held[1] : held[0];
  EXPECT_EQ(two.count, 2U);
  EXPECT_EQ(two.place.line(), line);
  EXPECT_THAT(two.place.file_name(), EndsWith("leaks_test.cc"));
  EXPECT_EQ(two.destination.gid, ipv4(2));
  EXPECT_EQ(one.count, 1U);
  EXPECT_EQ(one.place.line(), line + 3);
  EXPECT_TRUE(directory.leaks(std::chrono::hours(1)).empty());
}

TEST_F(Leaks, AHandleOfATicketHasThePlaceThatAsked) {
  AhDirectory directory = make_directory();
  const AhTicket ticket = directory.acquire_async(to(2));
  const std::string asked = here();
  const AhHandle handle = *ticket.wait(soon());
  ASSERT_EQ(directory.leaks(kAny).size(), 1U);
  EXPECT_EQ(directory.leaks(kAny)[0].place.line() + 1, static_cast<std::uint32_t>(std::stoul(asked.substr(14))));
}

TEST_F(Leaks, WhatIsDroppedIsNotNamed) {
  AhDirectory directory = make_directory();
  {
    AhHandle handle = *directory.acquire(to(2), soon());
    AhHandle moved = std::move(handle);
    AhHandle other = *directory.acquire(to(3), soon());
    other = moved;
    EXPECT_EQ(directory.leaks(kAny).size(), 1U);
  }
  EXPECT_TRUE(directory.leaks(kAny).empty());
}

TEST_F(Leaks, ALeaseIsNamedWhereItsDestinationHasGotAnotherAddress) {
  AhDirectory directory = make_directory();
  AhHandle handle = *directory.acquire(to(2), soon());
  AhLease lease = std::move(*handle.lease());
  directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = ipv4(2)});
  ASSERT_TRUE(eventually([&] { return directory.stats().replaced == 1; }));
  handle = AhHandle();
  const std::vector<AhHolding> held = directory.leaks(kAny);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_TRUE(held[0].lease);
  EXPECT_EQ(held[0].destination.gid, ipv4(2));
  EXPECT_THAT(in_words(held[0]),
              AllOf(HasSubstr("1 lease(s) of ::ffff:10.0.0.2, held for "), HasSubstr("leaks_test.cc:")));
  lease = AhLease();
  EXPECT_TRUE(directory.leaks(kAny).empty());
}

TEST_F(Leaks, ARowHasTheLongestHeldAndWhereTheAddressLeads) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  const AhRow row = directory.rows().at(0);
  EXPECT_THAT(row.held_at.file_name(), EndsWith("leaks_test.cc"));
  EXPECT_EQ(row.next_hop, ipv4(2));
  EXPECT_FALSE(row.mac);
  EXPECT_EQ(row.cause, AhCause::kNone);
}

TEST_F(Leaks, CloseReturnsWhoHoldsOn) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  const AhLeftover left = directory.close(soon());
  EXPECT_TRUE(left.rows.empty());
  EXPECT_EQ(left.handles, 1U);
  ASSERT_EQ(left.held.size(), 1U);
  EXPECT_THAT(in_words(left), AllOf(HasSubstr("1 handle(s) of ::ffff:10.0.0.2"), HasSubstr("leaks_test.cc:")));
}

TEST_F(Leaks, TheEndOfADirectoryNamesHandlesHeldBeyondTheLimitAndNoOthers) {
  AhHandle handle;
  { handle = *make_directory().acquire(to(2), soon()); }
  EXPECT_EQ(reported, "");
  AhDirectoryOptions strict = options();
  strict.leak_age = std::chrono::nanoseconds(0);
  { handle = *make_directory(strict).acquire(to(3), soon()); }
  EXPECT_THAT(reported, AllOf(HasSubstr("1 handle(s) of ::ffff:10.0.0.3"), HasSubstr(here().substr(0, 14))));
}

TEST_F(Leaks, TheEndOfADirectoryNamesWhoTookTheLease) {
  AhLease lease;
  std::string place;
  {
    AhDirectory directory = make_directory();
    const AhHandle handle = *directory.acquire(to(2), soon());
    lease = std::move(*handle.lease()), place = here();
  }
  EXPECT_THAT(reported, AllOf(HasSubstr("left on the device: ::ffff:10.0.0.2 (1 lease(s)"), HasSubstr(place)));
}

TEST_F(Leaks, ATenantThatEndsNamesTheAddressHandlesThatHoldItsDomain) {
  Tenant tenant = std::move(*Tenant::create(context, {.name = "leaky"}));
  std::string place;
  {
    AhDirectory directory = std::move(*tenant.directory(1, options()));
    AhSender sender = std::move(*directory.make_sender());
    place = here();
    place = fmt::format("leaks_test.cc:{}, in ", std::stoul(place.substr(14)) - 1);
    ASSERT_TRUE(directory.acquire(to(2), soon()));
    ASSERT_NE(sender.next(to(2)), nullptr);
  }
  const TenantRelease released = tenant.close(Deadline::at({}));  // the directory is gone: nobody else knows
  EXPECT_FALSE(released.complete());
  EXPECT_THAT(released.in_words(), HasSubstr("address handle of ::ffff:10.0.0.2 (made at "));
  EXPECT_THAT(released.in_words(), HasSubstr(place));
}

TEST_F(Leaks, ASenderThatClosesDrains) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  const AhHandle handle = *directory.acquire(to(2), soon());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(post(pair, sender.next(handle)));
  int polls = 0;
  const AhSenderRest rest = sender.close(soon(), [&] {
    ++polls;
    complete_sends(pair.get(), 1);
    sender.completed(1);
  });
  EXPECT_TRUE(rest.empty()) << in_words(rest);
  EXPECT_EQ(polls, 5);
  EXPECT_EQ(sender.next(handle), nullptr);
  EXPECT_EQ(sender.next(to(2)), nullptr);
  EXPECT_EQ(directory.stats().hits, 5U);
  EXPECT_TRUE(sender.close(soon()).empty());
}

TEST_F(Leaks, ASenderThatCannotDrainSaysWhatIsLeft) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  for (std::uint32_t peer = 2; peer < 5; ++peer) ASSERT_TRUE(directory.acquire(to(peer), soon()));
  for (std::uint32_t peer = 2; peer < 5; ++peer) ASSERT_NE(sender.next(to(peer)), nullptr);
  sender.completed(1);
  int polls = 0;
  const AhSenderRest rest = sender.close(Deadline::at({}), [&] { ++polls; });
  EXPECT_EQ(polls, 1);
  EXPECT_EQ(rest.outstanding(), 2U);
  ASSERT_EQ(rest.destinations.size(), 2U);
  EXPECT_THAT(in_words(rest), AllOf(HasSubstr("2 work request(s) not completed, positions 2 to 3, to "),
                                    HasSubstr("10.0.0.3"), HasSubstr("10.0.0.4"), Not(HasSubstr("10.0.0.2"))));
  sender.drained();
  EXPECT_TRUE(sender.close(Deadline::at({})).empty());
  EXPECT_EQ(reported, "");
}

TEST_F(Leaks, AnotherThreadMayTellTheCompletionsThatACloseWaitsFor) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  ASSERT_TRUE(directory.acquire(to(2), soon()));
  ASSERT_NE(sender.next(to(2)), nullptr);
  std::thread other([&] { sender.completed(1); });
  EXPECT_TRUE(sender.close(soon()).empty());
  other.join();
}

TEST_F(Leaks, ASenderDestroyedWithWorkInFlightIsNamedInTheSameWords) {
  AhDirectory directory = make_directory();
  AhHandle handle = *directory.acquire(to(2), soon());
  std::string words;
  {
    AhSender sender = std::move(*directory.make_sender());
    ASSERT_NE(sender.next(handle), nullptr);
    words = in_words(sender.close(Deadline::at({})));
    EXPECT_EQ(reported, "");
  }
  EXPECT_THAT(words, HasSubstr("positions 1 to 1, to ::ffff:10.0.0.2 (sender made at "));
  EXPECT_THAT(reported, HasSubstr(words));
  reported.clear();
  directory = AhDirectory();
  EXPECT_THAT(reported, AllOf(HasSubstr("named by work in flight"), HasSubstr(words)));
}

TEST_F(Leaks, AnEmptySenderClosesAtOnce) {
  AhSender sender;
  EXPECT_TRUE(sender.close(Deadline::at({})).empty());
}

}  // namespace
}  // namespace verbena::fake
