#include "verbena/peer.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena {
namespace {

using namespace std::chrono_literals;
using Kind = PeerAction::Kind;

AhPeer peer_at(std::uint32_t last, std::uint64_t incarnation, std::uint32_t qpn = 0x11) {
  AhPeer peer;
  peer.destination.gid = Gid::from_ipv4(0x0a000000 + last);
  peer.qpn = qpn;
  peer.incarnation = incarnation;
  return peer;
}

const PeerTable::Instant kStart{1000s};

TEST(PeerTable, ARestartedPeerWithTheSameQueuePairIsAnotherPeer) {
  PeerTable table;
  const PeerId before = *table.introduce(peer_at(2, 1), kStart);
  EXPECT_EQ(*table.introduce(peer_at(2, 1), kStart), before);
  EXPECT_EQ(table.standing(peer_at(2, 2)), PeerStanding::kNewer);
  const PeerId after = *table.introduce(peer_at(2, 2), kStart);
  EXPECT_NE(after, before);
  EXPECT_FALSE(table.is_current(before));
  EXPECT_TRUE(table.is_current(after));
  EXPECT_EQ(table.find(peer_at(2, 0).destination, 0x11), after);
  EXPECT_EQ(table.standing(peer_at(2, 1)), PeerStanding::kQuarantined);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.quarantined(), 1U);
}

// reply_to(), events and rows name the port; an application that has one directory may leave it open.
TEST(PeerTable, APeerIsTheSameWhetherItsPortIsNamedOrLeftToTheDirectory) {
  for (const std::uint8_t port : std::array<std::uint8_t, 2>{1, 2}) {
    PeerTable table({.port = port});
    AhPeer named = peer_at(2, 1);
    named.destination.port = port;
    AhPeer named_first = peer_at(3, 1);
    named_first.destination.port = port;
    const PeerId id = *table.introduce(peer_at(2, 1), kStart);
    EXPECT_EQ(table.find(named.destination, named.qpn), id);
    EXPECT_EQ(*table.introduce(named, kStart), id);
    const PeerId other = *table.introduce(named_first, kStart);
    EXPECT_EQ(table.find(peer_at(3, 1).destination, named.qpn), other);
    AhPeer elsewhere = named;
    elsewhere.destination.port = 3;
    EXPECT_EQ(table.standing(elsewhere), PeerStanding::kUnknown);
    EXPECT_EQ(table.size(), 2U);
  }
}

TEST(PeerTable, AnOldIncarnationIsRefused) {
  PeerTable table;
  ASSERT_TRUE(table.introduce(peer_at(2, 7), kStart));
  const Result<PeerId> late = table.introduce(peer_at(2, 6), kStart);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(late.error().message, ::testing::HasSubstr("incarnation 6"));
}

TEST(PeerTable, WhatWasLetGoIsNotTakenUpAgainUntilItsQuarantineIsOver) {
  PeerTable table({.quarantine = 10s});
  const PeerId id = *table.introduce(peer_at(2, 1), kStart);
  table.let_go(id, kStart);
  EXPECT_FALSE(table.introduce(peer_at(2, 1), kStart + 9s));
  EXPECT_EQ(table.next_timeout(), kStart + 10s);
  EXPECT_FALSE(table.poll_action(kStart + 9s));
  const std::optional<PeerAction> action = table.poll_action(kStart + 10s);
  ASSERT_TRUE(action);
  EXPECT_EQ(action->kind, Kind::kReleased);
  EXPECT_EQ(action->id, id);
  EXPECT_EQ(table.standing(peer_at(2, 1)), PeerStanding::kUnknown);
  EXPECT_NE(*table.introduce(peer_at(2, 1), kStart + 11s), id);
}

TEST(PeerTable, TellsPlacesApart) {
  PeerTable table;
  AhPeer other_port = peer_at(2, 1);
  other_port.destination.port = 2;
  EXPECT_NE(*table.introduce(peer_at(2, 1), kStart), *table.introduce(peer_at(2, 1, 0x12), kStart));
  EXPECT_NE(*table.introduce(peer_at(2, 1), kStart), *table.introduce(other_port, kStart));
  EXPECT_EQ(table.size(), 3U);
}

TEST(PeerTable, KnowsTheSenderOfADatagramHoweverItIsReached) {
  PeerTable table;
  const PeerId id = *table.introduce(peer_at(2, 1), kStart);
  AhPeer heard = peer_at(2, 1);
  heard.destination.source = Gid::from_ipv4(0x0a000001);
  heard.destination.traffic_class = 8;
  heard.destination.flow_label = 77;
  EXPECT_EQ(table.standing(heard), PeerStanding::kCurrent);
  EXPECT_EQ(table.find(heard.destination, heard.qpn), id);
  heard.destination.gid = {};
  heard.destination.lid = 4;
  EXPECT_EQ(table.standing(heard), PeerStanding::kUnknown);
}

TEST(PeerTable, ProbesTheIdleAndDeclaresTheSilentDead) {
  PeerTable table({.quarantine = 1h, .probe_after = 10s, .probe_interval = 1s, .probes_until_dead = 2});
  const PeerId silent = *table.introduce(peer_at(2, 1), kStart);
  const PeerId alive = *table.introduce(peer_at(3, 1), kStart);
  table.on_heard(alive, kStart + 9s);
  for (std::uint32_t missed = 0; missed < 2; ++missed) {
    const std::optional<PeerAction> probe = table.poll_action(kStart + 10s + missed * 1s);
    ASSERT_TRUE(probe);
    EXPECT_EQ(probe->kind, Kind::kProbe);
    EXPECT_EQ(probe->id, silent);
    EXPECT_EQ(probe->missed, missed);
    EXPECT_FALSE(table.poll_action(kStart + 10s + missed * 1s));
  }
  const std::optional<PeerAction> dead = table.poll_action(kStart + 12s);
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->kind, Kind::kDead);
  EXPECT_FALSE(table.is_current(silent));
  EXPECT_EQ(table.poll_action(kStart + 19s)->id, alive);
  table.on_heard(alive, kStart + 19s);
  EXPECT_FALSE(table.poll_action(kStart + 20s));
  EXPECT_TRUE(table.is_current(alive));
}

TEST(PeerTable, WithoutProbesNothingIsDue) {
  PeerTable table;
  ASSERT_TRUE(table.introduce(peer_at(2, 1), kStart));
  EXPECT_FALSE(table.next_timeout());
  EXPECT_FALSE(table.poll_action(kStart + 1000h));
}

TEST(PeerTable, IsBounded) {
  PeerTable table({.max_peers = 4});
  for (std::uint32_t last = 2; last < 6; ++last) ASSERT_TRUE(table.introduce(peer_at(last, 1), kStart));
  const Result<PeerId> refused = table.introduce(peer_at(9, 1), kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  for (std::uint64_t incarnation = 2; incarnation < 100; ++incarnation) {
    ASSERT_TRUE(table.introduce(peer_at(2, incarnation), kStart));
    while (table.poll_action(kStart)) {
    }
    EXPECT_LE(table.quarantined(), 4U);
  }
  EXPECT_FALSE(table.introduce(peer_at(2, 1, 0x1000000), kStart));
}

TEST(PeerTable, DueTimesComeInOrderWhateverHappensBetween) {
  PeerTable table({.quarantine = 1h, .probe_after = 10s, .probe_interval = 1h});
  std::vector<PeerId> ids;
  for (std::uint32_t last = 0; last < 200; ++last) {
    ids.push_back(*table.introduce(peer_at(last, 1), kStart + std::chrono::milliseconds((last * 7919) % 1000)));
  }
  for (std::size_t i = 0; i < ids.size(); i += 3) {
    table.on_heard(ids[i], kStart + std::chrono::milliseconds((i * 104729) % 1000));
  }
  PeerTable::Instant last{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const PeerTable::Instant due = *table.next_timeout();
    EXPECT_GE(due, last);
    last = due;
    ASSERT_TRUE(table.poll_action(due));
  }
}

TEST(PeerTable, TimesThatMeanForEverAreTaken) {
  constexpr auto kForEver = std::chrono::nanoseconds::max();
  PeerTable peers({.quarantine = kForEver, .probe_after = kForEver, .probe_interval = kForEver});
  const PeerTable::Instant now{std::chrono::hours(1)};
  const PeerId id = *peers.introduce({.destination = {}, .qpn = 1, .incarnation = 1}, now);
  EXPECT_FALSE(peers.poll_action(now)) << "no probe is due";
  peers.on_heard(id, now);
  EXPECT_FALSE(peers.poll_action(now));
  peers.let_go(id, now);
  EXPECT_FALSE(peers.poll_action(now)) << "its quarantine has only begun";
  EXPECT_EQ(peers.quarantined(), 1U);
}

}  // namespace
}  // namespace verbena
