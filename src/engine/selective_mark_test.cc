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

// Where the mark of one queue pair happens to have one value for long.
TEST(PeerAbility, NorIsItWhereTheMarkHappensToStayTheSame) {
  struct Stretch {
    Qpn own;
    bool value;
    std::uint32_t psn;
  };
  for (const auto& [own, value, psn] : {Stretch{Qpn(0x200045), false, 0x37c082}, Stretch{Qpn(0x200015), true, 0x42a2f2},
                                        Stretch{Qpn(0xb0000c), true, 0x42be21}}) {
    PeerAbility peer;
    std::uint32_t right = 0;
    for (std::uint32_t i = 0; i < 200; ++i) {
      wire::Bth bth = header(psn + i, value);
      bth.destination_qpn = own;
      right += selective_mark(bth.psn, own) == value && right == i ? 1 : 0;
      peer.on_packet(bth);
      EXPECT_FALSE(peer.is_able());
    }
    EXPECT_GE(right, 32U) << "such a stretch it is";
  }
}

// What most cards send; some are slow to take anything else.
TEST(PeerAbility, APeerThatNeverShowsItGetsPacketsAsFromAnyOther) {
  PeerAbility peer;
  const auto is_marked = [&peer] {
    for (std::uint32_t i = 0; i < 100; ++i) {
      if (!peer.mark(Psn(i), kOwn)) return true;
    }
    return false;
  };
  for (std::uint32_t i = 0; i < PeerAbility::kInVain; ++i) {
    EXPECT_TRUE(is_marked()) << i;
    peer.on_packet(header(i, true));
  }
  EXPECT_FALSE(is_marked());
  peer.reset();
  EXPECT_TRUE(is_marked());
}

TEST(PeerAbility, TheSamePacketOverAndOverCountsOnce) {
  PeerAbility peer;
  for (int i = 0; i < 1'000; ++i) peer.on_packet(header(7, selective_mark(Psn(7), kOwn)));
  EXPECT_FALSE(peer.is_able());
}

}  // namespace
}  // namespace verbena::engine
