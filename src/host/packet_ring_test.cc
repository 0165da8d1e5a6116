#include "host/packet_ring.h"

#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

using Bytes = std::vector<std::byte>;

class Memory {
 public:
  explicit Memory(std::size_t capacity = kMinRingCapacity) : lines_(ring_memory_bytes(capacity) / sizeof(Line)) {
    format_ring(bytes());
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;
};

Envelope envelope_of(std::uint16_t port) {
  return {.source = Gid::from_ipv4(0x0a000001),
          .destination = Gid::from_ipv4(0x0a000002),
          .source_port = port,
          .traffic_class = 3,
          .hop_limit = 9};
}

Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i * 7);
  return bytes;
}

Push push(RingProducer& producer, const Bytes& bytes, std::uint16_t port = 1, bool has_icrc = false) {
  const auto half = bytes.size() / 2;
  const std::span<const std::byte> parts[] = {std::span(bytes).first(half), {}, std::span(bytes).subspan(half)};
  const auto result = producer.push(envelope_of(port), parts, static_cast<std::uint32_t>(bytes.size()), has_icrc);
  producer.publish();
  return result;
}

struct Pair {
  explicit Pair(std::size_t capacity = kMinRingCapacity)
      : memory(capacity), producer(memory.bytes()), consumer(memory.bytes()) {}
  Memory memory;
  RingProducer producer;
  RingConsumer consumer;
};

TEST(PacketRing, HasPowersOfTwoForCapacities) {
  for (const std::uint64_t good : {4096U, 8192U, 1U << 18, 1U << 24}) EXPECT_TRUE(is_ring_capacity(good)) << good;
  for (const std::uint64_t bad : {0U, 1U, 64U, 2048U, 4097U, 12288U, 1U << 25})
    EXPECT_FALSE(is_ring_capacity(bad)) << bad;
  EXPECT_FALSE(is_ring_capacity(std::uint64_t{1} << 40));
}

TEST(PacketRing, IsKnownByItsHeader) {
  Memory memory;
  EXPECT_TRUE(is_ring(memory.bytes()));
  EXPECT_FALSE(is_ring(memory.bytes().first(kRingHeaderBytes)));
  EXPECT_FALSE(is_ring(memory.bytes().first(kRingHeaderBytes + 2048)));
  EXPECT_FALSE(is_ring({}));
  memory.bytes()[0] = std::byte{1};
  EXPECT_FALSE(is_ring(memory.bytes()));
}

TEST(PacketRing, HandsOverEnvelopeBytesAndFlagInOrder) {
  Pair ring;
  const auto first = pattern(84, 1);
  const auto second = pattern(0, 2);
  const auto third = pattern(800, 3);
  EXPECT_EQ(push(ring.producer, first, 1000, true), Push::kStored);
  EXPECT_EQ(push(ring.producer, second, 1000, false), Push::kStored);
  EXPECT_EQ(push(ring.producer, third, 2000, true), Push::kStored);
  struct Expected {
    const Bytes& bytes;
    std::uint16_t port;
    bool has_icrc;
  };
  for (const auto& expected :
       {Expected{first, 1000, true}, Expected{second, 1000, false}, Expected{third, 2000, true}}) {
    RingRecord record;
    ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
    EXPECT_EQ(Bytes(record.bytes.begin(), record.bytes.end()), expected.bytes);
    EXPECT_EQ(*record.envelope, envelope_of(expected.port));
    EXPECT_EQ(record.has_icrc, expected.has_icrc);
  }
  RingRecord record;
  EXPECT_EQ(ring.consumer.pop(record), Pop::kEmpty);
}

TEST(PacketRing, ShowsABatchOnlyWhenItIsPublished) {
  Pair ring;
  RingRecord record;
  const auto envelope = envelope_of(1);
  const auto bytes = pattern(700, 1);
  const std::span<const std::byte> part(bytes);
  for (int lap = 0; lap < 50; ++lap) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(ring.producer.push(envelope, {&part, 1}, 700, false), Push::kStored);
      ASSERT_EQ(ring.consumer.pop(record), Pop::kEmpty);
    }
    EXPECT_TRUE(ring.consumer.arm());
    ring.producer.publish();
    EXPECT_TRUE(ring.producer.take_doorbell());
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
      ASSERT_EQ(Bytes(record.bytes.begin(), record.bytes.end()), bytes);
    }
    ring.producer.publish();
    ASSERT_EQ(ring.consumer.pop(record), Pop::kEmpty);
    ring.consumer.release();
  }
}

TEST(PacketRing, PutsA64ByteDatagramIntoTwoLines) {
  Pair ring;
  constexpr std::size_t kUd64 = 12 + 8 + 64;
  constexpr std::size_t kLines = kMinRingCapacity / kCacheLine;
  std::size_t stored = 0;
  while (push(ring.producer, pattern(kUd64, 0)) == Push::kStored) ++stored;
  EXPECT_EQ(stored, kLines / 2 - 1);  // one line stays free behind the newest
}

TEST(PacketRing, RefusesWhatCouldNeverFit) {
  Pair ring;
  EXPECT_EQ(push(ring.producer, pattern(max_ring_datagram(kMinRingCapacity) + 1, 0)), Push::kTooLong);
  EXPECT_EQ(push(ring.producer, pattern(max_ring_datagram(kMinRingCapacity), 0)), Push::kStored);
}

TEST(PacketRing, TakesTheLongestDatagramFromEveryEmptyPosition) {
  for (std::size_t lines = 0; lines < kMinRingCapacity / kCacheLine; ++lines) {
    Pair ring;
    RingRecord record;
    for (std::size_t i = 0; i < lines; ++i) {
      ASSERT_EQ(push(ring.producer, pattern(8, 1)), Push::kStored);
      ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
      ring.consumer.release();
    }
    const auto longest = pattern(max_ring_datagram(kMinRingCapacity), 5);
    ASSERT_EQ(push(ring.producer, longest, 7), Push::kStored) << lines;
    ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord) << lines;
    EXPECT_EQ(Bytes(record.bytes.begin(), record.bytes.end()), longest);
  }
}

TEST(PacketRing, IsFullUntilTheConsumerReleases) {
  Pair ring;
  const auto bytes = pattern(500, 1);
  std::uint64_t stored = 0;
  while (push(ring.producer, bytes) == Push::kStored) ++stored;
  EXPECT_EQ(ring.producer.count_unread(), stored);
  RingRecord record;
  ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
  EXPECT_EQ(push(ring.producer, bytes), Push::kFull);
  EXPECT_EQ(ring.producer.consumed(), 0U);
  ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
  ring.consumer.release();
  EXPECT_GT(ring.producer.consumed(), 0U);
  EXPECT_EQ(ring.producer.count_unread(), stored - 2);
  EXPECT_EQ(push(ring.producer, bytes), Push::kStored);
}

TEST(PacketRing, RingsOnceASleep) {
  Pair ring;
  push(ring.producer, pattern(8, 1));
  EXPECT_FALSE(ring.producer.take_doorbell());
  EXPECT_FALSE(ring.consumer.arm()) << "must not sleep over a record";
  RingRecord record;
  ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
  EXPECT_TRUE(ring.consumer.arm());
  push(ring.producer, pattern(8, 1));
  EXPECT_TRUE(ring.producer.take_doorbell());
  push(ring.producer, pattern(8, 1));
  EXPECT_FALSE(ring.producer.take_doorbell());
  ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
  ASSERT_EQ(ring.consumer.pop(record), Pop::kRecord);
  EXPECT_TRUE(ring.consumer.arm());
  ring.consumer.disarm();
  push(ring.producer, pattern(8, 1));
  EXPECT_FALSE(ring.producer.take_doorbell());
}

// Payload that looks like a published record at every place and in every lap must never be taken for one.
TEST(PacketRing, NeverTakesOldPayloadForARecord) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Pair ring;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(random() % 600);
    const std::uint64_t forged = (std::uint64_t{1} << 24) | (std::uint64_t{pushed + random() % 64} << 32) | 8;
    for (std::size_t at = 20; at + 8 <= bytes.size(); at += 8) std::memcpy(bytes.data() + at, &forged, 8);
    if (push(ring.producer, bytes, static_cast<std::uint16_t>(random() % 2)) == Push::kStored) ++pushed;
    RingRecord record;
    for (auto takes = random() % 3; takes > 0; --takes) {
      const auto result = ring.consumer.pop(record);
      ASSERT_NE(result, Pop::kBroken);
      if (result == Pop::kRecord) ++popped;
    }
    ring.consumer.release();
    ASSERT_LE(popped, pushed);
  }
  RingRecord record;
  while (ring.consumer.pop(record) == Pop::kRecord) ++popped;
  EXPECT_EQ(popped, pushed);
}

TEST(PacketRing, CarriesEverySizeThroughManyLaps) {
  Pair ring;
  std::uint32_t next = 0;
  std::uint32_t expected = 0;
  RingRecord record;
  while (expected < 20000) {
    while (push(ring.producer, pattern(next % 700, next), static_cast<std::uint16_t>(next / 3)) == Push::kStored)
      ++next;
    while (ring.consumer.pop(record) == Pop::kRecord) {
      ASSERT_EQ(Bytes(record.bytes.begin(), record.bytes.end()), pattern(expected % 700, expected));
      ASSERT_EQ(record.envelope->source_port, static_cast<std::uint16_t>(expected / 3));
      ++expected;
    }
    ring.consumer.release();
  }
  EXPECT_EQ(expected, next);
}

TEST(PacketRing, CarriesRecordsBetweenTwoThreads) {
  constexpr std::uint32_t kCount = 50000;
  Pair ring(1 << 14);
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < kCount;) {
      if (push(ring.producer, pattern(i % 300, i), static_cast<std::uint16_t>(i / 16)) == Push::kStored) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < kCount;) {
    RingRecord record;
    if (ring.consumer.pop(record) != Pop::kRecord) {
      ring.consumer.release();
      std::this_thread::yield();
      continue;
    }
    if (Bytes(record.bytes.begin(), record.bytes.end()) != pattern(i % 300, i)) ++wrong;
    ++i;
  }
  sender.join();
  EXPECT_EQ(wrong, 0U);
}

// A sleeper that is never woken would hang this test.
TEST(PacketRing, LosesNoWakeUpBetweenTwoThreads) {
  constexpr std::uint32_t kCount = 20000;
  Pair ring(1 << 14);
  std::atomic<std::uint32_t> bell{0};
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      while (push(ring.producer, pattern(8, i)) != Push::kStored) std::this_thread::yield();
      if (ring.producer.take_doorbell()) {
        bell.fetch_add(1, std::memory_order_release);
        bell.notify_one();
      }
    }
  });
  for (std::uint32_t i = 0; i < kCount;) {
    RingRecord record;
    if (ring.consumer.pop(record) == Pop::kRecord) {
      ++i;
      continue;
    }
    ring.consumer.release();
    const auto before = bell.load(std::memory_order_acquire);
    if (ring.consumer.arm()) bell.wait(before);
    ring.consumer.disarm();
  }
  sender.join();
}

TEST(PacketRing, ConsumerClosesOnAWordThatCannotBe) {
  constexpr std::uint64_t kPublished = std::uint64_t{1} << 24;
  constexpr std::uint64_t kSame = std::uint64_t{1} << 26;
  constexpr std::uint64_t kFiller = std::uint64_t{1} << 27;
  struct Case {
    const char* what;
    std::uint64_t word;
  };
  for (const auto& [what, word] :
       {Case{"not published", 8}, Case{"wrong sequence", kPublished | (std::uint64_t{1} << 32)},
        Case{"longer than the limit", kPublished | 2000}, Case{"longer than the ring", kPublished | 0xffffff},
        Case{"no envelope before", kPublished | kSame | 8}, Case{"filler at the beginning", kPublished | kFiller},
        Case{"unknown flag", kPublished | (std::uint64_t{1} << 30)}}) {
    Pair ring;
    std::memcpy(ring.memory.bytes().data() + kRingHeaderBytes, &word, sizeof word);
    RingRecord record;
    EXPECT_EQ(ring.consumer.pop(record), Pop::kBroken) << what;
    std::memset(ring.memory.bytes().data() + kRingHeaderBytes, 0, 8);
    EXPECT_EQ(ring.consumer.pop(record), Pop::kBroken) << what << ": must be final";
  }
}

TEST(PacketRing, ProducerClosesOnATailThatCannotBe) {
  for (const std::uint64_t tail : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 20}) {
    Pair ring;
    while (push(ring.producer, pattern(500, 0)) == Push::kStored) continue;
    std::memcpy(ring.memory.bytes().data() + kCacheLine, &tail, sizeof tail);
    EXPECT_EQ(push(ring.producer, pattern(500, 0)), Push::kBroken) << tail;
  }
}

TEST(PacketRing, SurvivesAnyContent) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Pair ring;
    for (int i = 0; i < 20; ++i) push(ring.producer, pattern(random() % 300, 1), static_cast<std::uint16_t>(i / 4));
    auto bytes = ring.memory.bytes();
    for (int i = 0; i < 20; ++i) {
      const auto at = kRingHeaderBytes + (random() % 64) * kCacheLine + (random() % 2) * (random() % 8);
      bytes[at] = static_cast<std::byte>(random());
    }
    RingRecord record;
    unsigned sum = 0;
    for (int i = 0; i < 200 && ring.consumer.pop(record) == Pop::kRecord; ++i) {
      for (const auto byte : record.bytes) sum += std::to_integer<unsigned>(byte);
      if (i % 3 == 0) ring.consumer.release();
    }
    ring.producer.count_unread();
    EXPECT_GE(sum, 0U);
  }
}

}  // namespace
}  // namespace verbena::host
