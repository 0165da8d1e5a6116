#include "device/injection.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr auto kAh = ObjectKind::kAddressHandle;

Injection make(std::string_view text) {
  const auto spec = parse_injection(text);
  EXPECT_TRUE(spec) << spec.error().message;
  return Injection(spec ? *spec : InjectionSpec{});
}

TEST(Injection, OfNothingChangesNothing) {
  Injection injection = make("");
  for (int i = 0; i < 100; ++i) {
    const auto verdict = injection.on_call(kAh);
    EXPECT_EQ(verdict.error, 0);
    EXPECT_EQ(verdict.delay, Duration{0});
    EXPECT_FALSE(injection.loses_event());
  }
}

TEST(Injection, FailsTheCallsThatWereAskedForAndNoOthers) {
  Injection injection = make("create_ah.fail=ENOMEM,create_ah.after=3,create_ah.times=2");
  for (const int error : {0, 0, 0, ENOMEM, ENOMEM, 0, 0}) EXPECT_EQ(injection.on_call(kAh).error, error);
  EXPECT_EQ(injection.on_call(ObjectKind::kQueuePair).error, 0);
}

TEST(Injection, DrawsTheSameFromTheSameSeed) {
  const auto run = [](std::string_view text) {
    Injection injection = make(text);
    std::vector<std::pair<std::int64_t, int>> drawn;
    for (int i = 0; i < 1000; ++i) {
      const auto verdict = injection.on_call(kAh);
      drawn.emplace_back(verdict.delay.count(), verdict.error);
    }
    return drawn;
  };
  const char* const text = "create_ah.delay=1ms..3s,create_ah.fail=EAGAIN,create_ah.chance=10%,seed=5";
  const auto drawn = run(text);
  EXPECT_EQ(drawn, run(text));
  EXPECT_NE(drawn, run("create_ah.delay=1ms..3s,create_ah.fail=EAGAIN,create_ah.chance=10%,seed=6"));
  int failed = 0;
  for (const auto& [delay, error] : drawn) {
    EXPECT_GE(Duration(delay), milliseconds(1));
    EXPECT_LE(Duration(delay), seconds(3));
    failed += error == EAGAIN;
  }
  EXPECT_GT(failed, 60);
  EXPECT_LT(failed, 140);
}

TEST(Injection, LosesAShareOfTheEvents) {
  Injection injection = make("events.lose=50%");
  int lost = 0;
  for (int i = 0; i < 1000; ++i) lost += injection.loses_event();
  EXPECT_GT(lost, 430);
  EXPECT_LT(lost, 570);
}

TEST(Injection, SaysWhichPartIsWrongAndWhatItMayBe) {
  struct Case {
    const char* text;
    const char* part;
    const char* advice;
  };
  for (const auto& [text, part, advice] : {
           Case{"create_ah", "\"create_ah\"", "name=value"},
           Case{"create_ah=1ms", "\"create_ah=1ms\"", ".delay"},
           Case{"make_ah.delay=1ms", "\"make_ah.delay=1ms\"", "create_ah"},
           Case{"create_ah.slow=1ms", "\"create_ah.slow=1ms\"", ".delay"},
           Case{"create_ah.delay=3s..1s", "\"create_ah.delay=3s..1s\"", "1ms..3s"},
           Case{"create_ah.delay=1h", "\"create_ah.delay=1h\"", "60s"},
           Case{"create_ah.fail=ENOWHERE", "\"create_ah.fail=ENOWHERE\"", "ENOMEM"},
           Case{"create_ah.fail=ENOMEM,create_ah.after=-1", "\"create_ah.after=-1\"", "digits"},
           Case{"create_ah.after=5", "create_ah.after", "create_ah.fail=ENOMEM"},
           Case{"events.lose=2", "\"events.lose=2\"", "100%"},
           Case{"seed=x", "\"seed=x\"", "digits"},
       }) {
    const auto spec = parse_injection(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_THAT(spec.error().message, HasSubstr(part)) << text;
    EXPECT_THAT(spec.error().message, HasSubstr(advice)) << text;
    EXPECT_THAT(spec.error().message, HasSubstr("VERBENA_INJECT")) << text;
  }
}

}  // namespace
}  // namespace verbena::device
