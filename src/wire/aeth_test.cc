#include "wire/aeth.h"

#include <gtest/gtest.h>

#include "wire/credit.h"
#include "wire/rnr_timer.h"

namespace verbena::wire {
namespace {

using std::chrono::microseconds;

TEST(Syndrome, KindsAndCodesMatchTheSpecification) {
  EXPECT_EQ(Syndrome::ack(kNoCreditLimit).value(), 0x1f);
  EXPECT_EQ(Syndrome::rnr_nak(12).value(), 0x2c);
  EXPECT_EQ(Syndrome::nak(NakCode::kPsnSequenceError).value(), 0x60);
  EXPECT_EQ(Syndrome::nak(NakCode::kInvalidRequest).value(), 0x61);
  EXPECT_EQ(Syndrome::nak(NakCode::kRemoteAccessError).value(), 0x62);
  EXPECT_EQ(Syndrome::nak(NakCode::kRemoteOperationalError).value(), 0x63);
  EXPECT_EQ(Syndrome::nak(NakCode::kInvalidRdRequest).value(), 0x64);
}

TEST(Syndrome, EveryByteHasOneKind) {
  for (unsigned value = 0; value < 256; ++value) {
    const Syndrome syndrome(static_cast<std::uint8_t>(value));
    SyndromeKind expected = SyndromeKind::kReserved;
    if (value < 0x20) {
      expected = SyndromeKind::kAck;
    } else if (value < 0x40) {
      expected = SyndromeKind::kRnrNak;
    } else if (value >= 0x60 && value <= 0x64) {
      expected = SyndromeKind::kNak;
    }
    EXPECT_EQ(syndrome.kind(), expected) << value;
    if (expected == SyndromeKind::kNak) {
      EXPECT_EQ(Syndrome::nak(syndrome.nak_code()), syndrome);
    }
    if (expected == SyndromeKind::kRnrNak) {
      EXPECT_EQ(Syndrome::rnr_nak(syndrome.code()), syndrome);
    }
    if (expected == SyndromeKind::kAck) {
      EXPECT_EQ(Syndrome::ack(syndrome.code()), syndrome);
    }
  }
}

TEST(RnrTimer, CodesMeanTheirDelays) {
  EXPECT_EQ(rnr_delay(0), microseconds(655'360));
  EXPECT_EQ(rnr_delay(1), microseconds(10));
  EXPECT_EQ(rnr_delay(12), microseconds(640));
  EXPECT_EQ(rnr_delay(25), microseconds(61'440));
  EXPECT_EQ(rnr_delay(31), microseconds(491'520));
  EXPECT_EQ(rnr_delay(0x20 | 5), microseconds(60));
}

TEST(RnrTimer, DelaysGrowWithTheCodeExceptForZeroWhichIsTheLongest) {
  for (std::uint8_t code = 2; code < 32; ++code) EXPECT_GT(rnr_delay(code), rnr_delay(code - 1)) << int{code};
  EXPECT_GT(rnr_delay(0), rnr_delay(31));
}

TEST(RnrTimer, CodeOfADelayIsTheShortestThatIsNotBelow) {
  for (std::uint8_t code = 0; code < 32; ++code) EXPECT_EQ(rnr_timer_code(rnr_delay(code)), code);
  EXPECT_EQ(rnr_timer_code(Duration(0)), 1);
  EXPECT_EQ(rnr_timer_code(microseconds(61)), 6);
  EXPECT_EQ(rnr_timer_code(microseconds(10'000'000)), 0);
}

TEST(Credit, CodesMeanTheirCounts) {
  EXPECT_EQ(credits_of(0), 0U);
  EXPECT_EQ(credits_of(5), 6U);
  EXPECT_EQ(credits_of(16), 256U);
  EXPECT_EQ(credits_of(0x1e), 32768U);
  EXPECT_EQ(credits_of(kNoCreditLimit), std::nullopt);
}

TEST(Credit, CodeNeverPromisesMoreThanThereIs) {
  for (std::uint32_t free_receives = 0; free_receives < 70'000; ++free_receives) {
    const std::uint8_t code = credit_code(free_receives);
    ASSERT_LE(credits_of(code), free_receives);
    if (code + 1U < kCredits.size()) {
      ASSERT_GT(kCredits[code + 1U], free_receives);
    }
  }
}

}  // namespace
}  // namespace verbena::wire
