#include "engine/selective_mark.h"

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

constexpr Qpn kOwn(0x20001);

wire::Bth header(std::uint32_t psn, bool mark) {
  wire::Bth bth;
  bth.psn = Psn(psn);
  bth.destination_qpn = kOwn;
  bth.migration_request = mark;
  return bth;
}

TEST(PeerAbility, IsKnownAfterSoManyMarksInARowAcrossTheSeam) {
  PeerAbility peer;
  for (std::uint32_t i = 0; i < PeerAbility::kEnough; ++i) {
    EXPECT_FALSE(peer.is_able());
    const Psn psn(0xfffff8 + 3 * i);
    peer.on_packet(header(psn.value(), selective_mark(psn, kOwn)));
  }
  EXPECT_TRUE(peer.is_able());
}

TEST(PeerAbility, OneWrongMarkBeginsTheCountAnew) {
  PeerAbility peer;
  for (std::uint32_t i = 0; i < 2U * PeerAbility::kEnough - 1; ++i) {
    const bool wrong = i == PeerAbility::kEnough - 1;
    peer.on_packet(header(i, selective_mark(Psn(i), kOwn) != wrong));
  }
  EXPECT_FALSE(peer.is_able());
}

// What other devices send: MigReq always set, or never.
TEST(PeerAbility, AValueThatNeverChangesIsNotTakenForTheMark) {
  for (const bool value : {false, true}) {
    for (const std::uint32_t step : {1U, 2U, 4U, 16U, 32U, 64U, 128U}) {
      PeerAbility peer;
      for (std::uint32_t i = 0; i < 100'000; ++i) {
        ASSERT_FALSE(peer.is_able());
        peer.on_packet(header(i * step, value));
      }
    }
  }
}

TEST(PeerAbility, TheSamePacketOverAndOverCountsOnce) {
  PeerAbility peer;
  for (int i = 0; i < 1'000; ++i) peer.on_packet(header(7, selective_mark(Psn(7), kOwn)));
  EXPECT_FALSE(peer.is_able());
}

}  // namespace
}  // namespace verbena::engine
