#include "engine/early_packets.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"

namespace verbena::engine {
namespace {

using testing::pattern;

constexpr std::uint32_t kBase = 0xfffff0;  // so that the circle's seam is crossed

wire::Packet packet(std::uint32_t ahead, std::span<const std::byte> payload = {}) {
  wire::Packet made;
  made.bth.psn = Psn(kBase + ahead);
  made.payload = payload;
  return made;
}

TEST(EarlyPackets, KeepsACopyUntilItIsTaken) {
  EarlyPackets early;
  early.advance(Psn(kBase));
  auto payload = pattern(100);
  ASSERT_TRUE(early.keep(packet(20, payload)));
  std::fill(payload.begin(), payload.end(), std::byte{0});
  EXPECT_TRUE(early.has(Psn(kBase + 20)));
  EXPECT_FALSE(early.has(Psn(kBase + 19)));
  const auto taken = early.take(Psn(kBase + 20));
  ASSERT_NE(taken, nullptr);
  EXPECT_TRUE(std::ranges::equal(taken->packet.payload, pattern(100)));
  EXPECT_TRUE(early.empty());
  EXPECT_EQ(early.take(Psn(kBase + 20)), nullptr);
}

TEST(EarlyPackets, OfTwoCopiesTheFirstStays) {
  EarlyPackets early;
  early.advance(Psn(kBase));
  ASSERT_TRUE(early.keep(packet(1, pattern(8, 1))));
  ASSERT_TRUE(early.keep(packet(1, pattern(8, 2))));
  EXPECT_TRUE(std::ranges::equal(early.take(Psn(kBase + 1))->packet.payload, pattern(8, 1)));
}

TEST(EarlyPackets, NothingIsKeptOutOfReach) {
  EarlyPackets early;
  early.advance(Psn(kBase));
  EXPECT_FALSE(early.keep(packet(EarlyPackets::kReach)));
  EXPECT_FALSE(early.keep(packet(0xffffff)));  // one behind
  EXPECT_TRUE(early.keep(packet(EarlyPackets::kReach - 1)));
}

TEST(EarlyPackets, WhatIsPassedGoesAndNeverComesBackARoundLater) {
  EarlyPackets early;
  early.advance(Psn(kBase));
  for (std::uint32_t ahead = 1; ahead < EarlyPackets::kReach; ++ahead) ASSERT_TRUE(early.keep(packet(ahead)));
  early.advance(Psn(kBase + 40));
  EXPECT_FALSE(early.has(Psn(kBase + 39)));
  EXPECT_TRUE(early.has(Psn(kBase + 40)));
  early.advance(Psn(kBase + 0x400000));
  EXPECT_TRUE(early.empty());
  EXPECT_FALSE(early.has(Psn(kBase + 40)));
}

}  // namespace
}  // namespace verbena::engine
