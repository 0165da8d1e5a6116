#include "device/event_channel.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace verbena::device {
namespace {

void ignore(const EventChannel::Record&) {}

std::unique_ptr<EventChannel> non_blocking(EventChannel::Form form) {
  auto channel = EventChannel::open(form).value();
  EXPECT_EQ(fcntl(channel->fd(), F_SETFL, O_NONBLOCK), 0);
  return channel;
}

bool readable(const EventChannel& channel) {
  pollfd entry{channel.fd(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(EventChannel, APlainReadGivesOneKernelRecord) {
  const auto completion = non_blocking(EventChannel::Form::kCompletion);
  completion->push({0x1122334455667788, 0});
  completion->push({2, 0});
  unsigned char bytes[64] = {};
  ASSERT_EQ(read(completion->fd(), bytes, sizeof bytes), 8);
  std::uint64_t element = 0;
  std::memcpy(&element, bytes, sizeof element);
  EXPECT_EQ(element, 0x1122334455667788U);

  const auto async = non_blocking(EventChannel::Form::kAsync);
  async->push({1, 18});
  ASSERT_EQ(read(async->fd(), bytes, sizeof bytes), 16);
  std::uint32_t type = 0;
  std::memcpy(&type, bytes + 8, sizeof type);
  EXPECT_EQ(type, 18U);
}

TEST(EventChannel, AnEmptyNonBlockingChannelSaysEagain) {
  const auto channel = non_blocking(EventChannel::Form::kCompletion);
  EventChannel::Record record;
  EXPECT_FALSE(readable(*channel));
  EXPECT_EQ(channel->take(record, ignore), EAGAIN);
}

TEST(EventChannel, MoreRecordsThanASocketHoldsAllArriveInOrder) {
  const auto channel = non_blocking(EventChannel::Form::kAsync);
  constexpr std::uint64_t kMany = 5000;
  for (std::uint64_t i = 0; i < kMany; ++i) channel->push({i, 3});
  for (std::uint64_t i = 0; i < kMany; ++i) {
    EventChannel::Record record;
    ASSERT_EQ(channel->take(record, ignore), 0);
    ASSERT_EQ(record.element, i);
  }
  EXPECT_FALSE(readable(*channel));
}

TEST(EventChannel, APurgedElementIsNeverTakenAndTheOthersStayInOrder) {
  const auto channel = non_blocking(EventChannel::Form::kCompletion);
  for (std::uint64_t i = 0; i < 3000; ++i) channel->push({i % 3, 0});
  channel->purge(1);
  EventChannel::Record record;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(channel->take(record, ignore), 0);
    ASSERT_EQ(record.element, 0U);
    ASSERT_EQ(channel->take(record, ignore), 0);
    ASSERT_EQ(record.element, 2U);
  }
  EXPECT_EQ(channel->take(record, ignore), EAGAIN);
}

}  // namespace
}  // namespace verbena::device
