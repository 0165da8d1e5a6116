#include "engine/pacer.h"

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

TEST(Rate, CodesMeanWhatVerbsSays) {
  struct Case {
    std::uint8_t code;
    std::uint64_t megabits;
  };
  for (const Case& c :
       {Case{2, 2500},    Case{3, 10000},   Case{4, 30000},   Case{5, 5000},    Case{6, 20000},   Case{7, 40000},
        Case{8, 60000},   Case{9, 80000},   Case{10, 120000}, Case{11, 14000},  Case{12, 56000},  Case{13, 112000},
        Case{14, 168000}, Case{15, 25000},  Case{16, 100000}, Case{17, 200000}, Case{18, 300000}, Case{19, 28000},
        Case{20, 50000},  Case{21, 400000}, Case{22, 600000}, Case{23, 800000}, Case{24, 1200000}}) {
    EXPECT_EQ(bits_per_second(c.code), c.megabits * 1'000'000) << int{c.code};
  }
  EXPECT_EQ(bits_per_second(0), 0U);
  EXPECT_FALSE(bits_per_second(1));
  EXPECT_FALSE(bits_per_second(25));
}

TEST(Rate, BytePeriodIsCloseToTheRate) {
  for (std::uint8_t code = 2; code <= 24; ++code) {
    const double period = byte_period(*bits_per_second(code)) / static_cast<double>(1U << kBytePeriodShift);
    const double exact = 8e9 / static_cast<double>(*bits_per_second(code));
    EXPECT_NEAR(period / exact, 1, 0.001) << int{code};
  }
}

// Sends whenever it may, as a caller that wakes `late` after the time it was told.
double measured_rate(std::uint8_t code, std::uint32_t bytes, Duration late) {
  Pacer pacer;
  const BytePeriod period = byte_period(*bits_per_second(code));
  Instant now{1'000'000'000};
  const Instant begin = now;
  constexpr int kPackets = 50'000;
  for (int i = 0; i < kPackets; ++i) {
    if (!pacer.may_send(now)) now = pacer.free_at() + late;
    EXPECT_TRUE(pacer.may_send(now));
    pacer.on_sent(now, period, bytes);
  }
  return 8.0 * kPackets * bytes / static_cast<double>((pacer.free_at() - begin).count()) * 1e9;
}

TEST(Pacer, KeepsTheRate) {
  for (const auto code : std::initializer_list<std::uint8_t>{2, 3, 15, 16}) {
    const auto rate = static_cast<double>(*bits_per_second(code));
    EXPECT_NEAR(measured_rate(code, 1024, Duration(0)) / rate, 1, 0.01) << int{code};
    EXPECT_NEAR(measured_rate(code, 1024, Duration(10'000)) / rate, 1, 0.01) << "woken late, " << int{code};
  }
}

TEST(Pacer, IdlenessIsNotSavedUp) {
  Pacer pacer;
  const BytePeriod period = byte_period(2'500'000'000);
  Instant now{5'000'000'000};
  int burst = 0;
  for (; pacer.may_send(now); ++burst) pacer.on_sent(now, period, 1000);  // 3200 ns each
  EXPECT_EQ(burst, 7) << "20 us worth, and the one that was owed nothing";
}

TEST(Pacer, RefundUndoes) {
  Pacer pacer;
  const BytePeriod period = byte_period(2'500'000'000);
  const Instant now{5'000'000'000};
  for (int i = 0; i < 100; ++i) {
    pacer.on_sent(now, period, 100'000);
    EXPECT_FALSE(pacer.may_send(now));
    pacer.refund(period, 100'000);
    EXPECT_TRUE(pacer.may_send(now));
  }
}

}  // namespace
}  // namespace verbena::engine
