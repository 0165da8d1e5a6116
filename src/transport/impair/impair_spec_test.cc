#include "transport/impair/impair_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::transport {
namespace {

using ::testing::HasSubstr;

TEST(ImpairSpec, ReadsEveryPart) {
  const auto spec = parse_impair_spec(
      "loss=5%, dup=0.5% ,reorder=0.25,corrupt=0.1%,mark=2%,delay=1.5ms,jitter=200us,seed=18446744073709551615");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_DOUBLE_EQ(spec->loss, 0.05);
  EXPECT_DOUBLE_EQ(spec->duplicate, 0.005);
  EXPECT_DOUBLE_EQ(spec->reorder, 0.25);
  EXPECT_DOUBLE_EQ(spec->corrupt, 0.001);
  EXPECT_DOUBLE_EQ(spec->mark, 0.02);
  EXPECT_EQ(spec->delay, std::chrono::microseconds(1500));
  EXPECT_EQ(spec->jitter, std::chrono::microseconds(200));
  EXPECT_EQ(spec->seed, 18446744073709551615U);
  EXPECT_FALSE(spec->is_idle());
}

TEST(ImpairSpec, IsIdleWhereNothingIsAsked) {
  for (const auto* text : {"", "  ", "seed=3", "loss=0%", "delay=0ms,dup=0"}) {
    const auto spec = parse_impair_spec(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_TRUE(spec->is_idle()) << text;
  }
}

TEST(ImpairSpec, SaysWhichPartIsWrongAndWhatItMayBe) {
  struct Case {
    const char* text;
    const char* part;
    const char* advice;
  };
  for (const auto& [text, part, advice] : {
           Case{"loss", "\"loss\"", "name=value"},
           Case{"loss=", "\"loss=\"", "5%"},
           Case{"loss=5%,,dup=1%", "\"\"", "name=value"},
           Case{"loss=101%", "\"loss=101%\"", "100%"},
           Case{"loss=5", "\"loss=5\"", "0.05"},
           Case{"loss=-1%", "\"loss=-1%\"", "0%"},
           Case{"loss=nan", "\"loss=nan\"", "5%"},
           Case{"loss=5%x", "\"loss=5%x\"", "5%"},
           Case{"loss=1%,loss=2%", "\"loss=2%\"", "second"},
           Case{"delay=5", "\"delay=5\"", "1.5ms"},
           Case{"delay=1h", "\"delay=1h\"", "1.5ms"},
           Case{"delay=61s", "\"delay=61s\"", "60s"},
           Case{"jitter=-1ms", "\"jitter=-1ms\"", "1.5ms"},
           Case{"jitter=inf", "\"jitter=inf\"", "1.5ms"},
           Case{"seed=1.5", "\"seed=1.5\"", "whole"},
           Case{"seed=x", "\"seed=x\"", "whole"},
           Case{"drop=5%", "\"drop=5%\"", "loss, dup"},
       }) {
    const auto spec = parse_impair_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(spec.error().message, HasSubstr(part));
    EXPECT_THAT(spec.error().message, HasSubstr(advice));
    EXPECT_THAT(spec.error().message, HasSubstr("VERBENA_IMPAIR"));
  }
}

}  // namespace
}  // namespace verbena::transport
