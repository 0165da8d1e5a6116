#include "host/hello.h"

#include <vector>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr Hello kExample{.kind = HelloKind::kOpenRing, .slot = Slot(200), .pid = 4711, .memory_bytes = 266240};

TEST(Hello, ReadsBackEveryKind) {
  for (const auto kind : {HelloKind::kOpenRing, HelloKind::kReadCounters, HelloKind::kCounters}) {
    Hello hello = kExample;
    hello.kind = kind;
    EXPECT_EQ(decode_hello(encode(hello)), hello);
  }
}

TEST(Hello, StandsAsDrawn) {
  const auto message = encode(kExample);
  const std::vector<int> expected{'V', 'R', 'B', 'H', 0, 1, 0, 1, 0, 0, 0x12, 0x67,
                                  0,   0,   0,   200, 0, 0, 0, 0, 0, 4, 0x10, 0};
  for (std::size_t i = 0; i < message.size(); ++i) EXPECT_EQ(std::to_integer<int>(message[i]), expected[i]) << i;
}

TEST(Hello, RefusesEveryTruncation) {
  const auto message = encode(kExample);
  for (std::size_t size = 0; size < message.size(); ++size) {
    EXPECT_FALSE(decode_hello(std::span(message).first(size))) << size;
  }
}

TEST(Hello, TakesWhatALaterVersionAppends) {
  const auto message = encode(kExample);
  std::vector<std::byte> longer(message.begin(), message.end());
  longer.resize(100, std::byte{0xff});
  EXPECT_EQ(decode_hello(longer), kExample);
}

TEST(Hello, RefusesAnotherMagicVersionKindOrSlot) {
  for (const std::size_t at : {0U, 3U, 4U, 5U, 6U, 7U, 12U, 13U, 14U}) {
    auto message = encode(kExample);
    message[at] = std::byte{0x55};
    EXPECT_FALSE(decode_hello(message)) << at;
  }
  auto kindless = encode(kExample);
  kindless[7] = std::byte{0};
  EXPECT_FALSE(decode_hello(kindless));
}

}  // namespace
}  // namespace verbena::host
