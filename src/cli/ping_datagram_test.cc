#include "cli/ping_datagram.h"

#include <array>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

TEST(PingDatagram, RoundTrips) {
  for (const std::size_t size : {std::size_t{16}, std::size_t{17}, std::size_t{64}, std::size_t{4096}}) {
    std::vector<std::byte> payload(size);
    const PingHeader header{0xdeadbeef, 0x0123456789abcdef};
    write_ping(payload, header);
    const auto read = read_ping(payload);
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(*read, header);
    EXPECT_TRUE(is_intact(payload));
  }
}

TEST(PingDatagram, Golden) {
  std::array<std::byte, 18> payload{};
  write_ping(payload, {1, 2});
  const std::array<unsigned, 18> expected{'V', 'B', 'P', '1', 0, 0, 0, 1,           0,
                                          0,   0,   0,   0,   0, 0, 2, 2 * 31 + 16, 2 * 31 + 17};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(payload[i]), expected[i]) << i;
  }
}

TEST(PingDatagram, RejectsEveryTruncationOfItsHeader) {
  std::vector<std::byte> payload(kPingHeaderBytes);
  write_ping(payload, {1, 2});
  for (std::size_t size = 0; size < kPingHeaderBytes; ++size) {
    EXPECT_FALSE(read_ping(std::span(payload).first(size))) << size;
  }
}

TEST(PingDatagram, FindsEveryByteThatWasChanged) {
  std::vector<std::byte> payload(256);
  write_ping(payload, {1, 300});
  for (std::size_t at = kPingHeaderBytes; at < payload.size(); ++at) {
    payload[at] ^= std::byte{1};
    EXPECT_FALSE(is_intact(payload)) << at;
    payload[at] ^= std::byte{1};
  }
  EXPECT_TRUE(is_intact(payload));
}

TEST(PingDatagram, IsNotWhatOthersSend) {
  const std::vector<std::byte> zeros(64);
  EXPECT_FALSE(read_ping(zeros));
}

}  // namespace
}  // namespace verbena::cli
