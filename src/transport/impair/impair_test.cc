#include "transport/impair/impair.h"

#include <array>
#include <bit>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/testing.h"

namespace verbena::transport {
namespace {

using testing::Batch;
using testing::Bytes;
using testing::Drops;
using ::testing::ElementsAre;
using testing::text_of;

// Remembers what it is given, and takes no more than it has room for.
class Sink final : public Sender {
 public:
  SendResult send(std::span<const Outgoing> batch, Instant) noexcept override {
    SendResult result;
    for (const auto& one : batch) {
      if (room == 0) {
        result.full = true;
        break;
      }
      --room;
      Bytes bytes;
      for (const auto part : one.parts) bytes.insert(bytes.end(), part.begin(), part.end());
      EXPECT_EQ(bytes.size(), one.size);
      headers.push_back(text_of(one.network_header));
      traffic_classes.push_back(one.envelope->traffic_class);
      all.push_back(std::move(bytes));
      ++result.taken;
    }
    return result;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const auto& bytes : all) result.push_back(text_of(bytes));
    return result;
  }

  std::size_t room = std::numeric_limits<std::size_t>::max();
  std::vector<Bytes> all;
  std::vector<std::string> headers;
  std::vector<std::uint8_t> traffic_classes;
};

ImpairSpec spec_of(const char* text) {
  return *parse_impair_spec(text);
}

struct Impaired {
  explicit Impaired(const char* text, std::size_t limit = Impair::kHeldLimit)
      : impair(spec_of(text), sink, drops, limit) {}

  void send(int from, int to, Instant now = {}) {
    for (int i = from; i < to; ++i) {
      const Batch batch({"datagram " + std::to_string(i)});
      ASSERT_EQ(impair.send(batch.get(), now).taken, 1U);
    }
  }

  Sink sink;
  Drops drops;
  Impair impair;
};

constexpr auto kEverything = "loss=5%,dup=5%,reorder=5%,corrupt=5%,delay=1ms,jitter=1ms,seed=7";

TEST(Impair, DoesTheSameForTheSameSeed) {
  Impaired one(kEverything);
  Impaired two(kEverything);
  Impaired other("loss=5%,dup=5%,reorder=5%,corrupt=5%,delay=1ms,jitter=1ms,seed=8");
  for (auto* impaired : {&one, &two, &other}) {
    impaired->send(0, 2000);
    impaired->impair.on_timeout({1'000'000'000});
  }
  EXPECT_EQ(one.sink.texts(), two.sink.texts());
  EXPECT_EQ(one.impair.counts(), two.impair.counts());
  EXPECT_NE(one.sink.texts(), other.sink.texts());
}

TEST(Impair, DecidesTheSameWhateverTheTimeAndTheSizeOfBatches) {
  Impaired one("loss=10%,seed=3");
  Impaired two("loss=10%,seed=3");
  std::vector<std::string> texts;
  texts.reserve(300);
  for (int i = 0; i < 300; ++i) texts.push_back("datagram " + std::to_string(i));
  one.send(0, 300, {77});
  EXPECT_EQ(two.impair.send(Batch(texts).get(), {1'000'000}).taken, 300U);
  EXPECT_EQ(one.sink.texts(), two.sink.texts());
}

TEST(Impair, DoesEachAboutAsOftenAsAsked) {
  Impaired impaired("loss=10%,dup=5%,reorder=20%,seed=42");
  impaired.send(0, 10000);
  const auto counts = impaired.impair.counts();
  EXPECT_EQ(counts.seen, 10000U);
  EXPECT_NEAR(static_cast<double>(counts.lost), 1000, 150);
  EXPECT_NEAR(static_cast<double>(counts.duplicated), 450, 100);
  EXPECT_NEAR(static_cast<double>(counts.reordered), 1800, 200);
  EXPECT_EQ(impaired.drops.of(Drop::kImpairLoss), counts.lost);
}

TEST(Impair, AccountsForEveryDatagram) {
  for (const auto* text : {kEverything, "loss=50%,dup=50%,reorder=50%", "reorder=100%", "dup=100%", "loss=100%"}) {
    Impaired impaired(text);
    impaired.send(0, 3000);
    impaired.impair.on_timeout({1'000'000'000});
    EXPECT_FALSE(impaired.impair.next_timeout());
    const auto counts = impaired.impair.counts();
    EXPECT_EQ(impaired.sink.all.size(), counts.seen - counts.lost + counts.duplicated) << text;
    EXPECT_EQ(impaired.drops.total(), counts.lost) << text;
  }
}

TEST(Impair, ReordersByLettingAFewPass) {
  Impaired impaired("reorder=10%,seed=5");
  impaired.send(0, 1000);
  impaired.impair.on_timeout({1'000'000'000});
  const auto texts = impaired.sink.texts();
  ASSERT_EQ(texts.size(), 1000U);
  int displaced = 0;
  for (int i = 0; i < 1000; ++i) {
    const int number = std::stoi(texts[static_cast<std::size_t>(i)].substr(9));
    EXPECT_LE(std::abs(number - i), 8) << "a few, not many";
    if (number != i) ++displaced;
  }
  EXPECT_GT(displaced, 90);
}

TEST(Impair, DoesNotHoldTheLastOneForEver) {
  Impaired impaired("reorder=100%");
  impaired.send(0, 1, {1000});
  EXPECT_TRUE(impaired.sink.all.empty());
  ASSERT_TRUE(impaired.impair.next_timeout());
  impaired.impair.on_timeout(*impaired.impair.next_timeout());
  EXPECT_THAT(impaired.sink.texts(), ElementsAre("datagram 0"));
}

TEST(Impair, DelaysInOrder) {
  Impaired impaired("delay=1ms");
  impaired.send(0, 2, {0});
  impaired.send(2, 3, {500'000});
  EXPECT_EQ(impaired.impair.next_timeout(), Instant{1'000'000});
  impaired.impair.on_timeout({999'999});
  EXPECT_TRUE(impaired.sink.all.empty());
  impaired.impair.on_timeout({1'000'000});
  EXPECT_THAT(impaired.sink.texts(), ElementsAre("datagram 0", "datagram 1"));
  EXPECT_EQ(impaired.impair.next_timeout(), Instant{1'500'000});
  impaired.send(3, 4, {1'500'000});
  EXPECT_THAT(impaired.sink.texts(), ElementsAre("datagram 0", "datagram 1", "datagram 2"));
  EXPECT_EQ(impaired.impair.counts().delayed, 4U);
}

TEST(Impair, FlipsOneBitThatTheIcrcCovers) {
  Impaired impaired("corrupt=100%,seed=9");
  const Bytes original(60);
  for (int i = 0; i < 500; ++i) {
    Batch batch;
    batch.add(testing::example_envelope(), original, true);
    ASSERT_EQ(impaired.impair.send(batch.get(), {}).taken, 1U);
  }
  for (const auto& bytes : impaired.sink.all) {
    int flipped = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto here = std::popcount(std::to_integer<unsigned>(bytes[i]));
      if (here != 0) {
        EXPECT_GE(i, 5U);
      }
      flipped += here;
    }
    EXPECT_EQ(flipped, 1);
  }
  EXPECT_EQ(impaired.impair.counts().corrupted, 500U);
}

TEST(Impair, DamagesNothingThatNobodyWouldCheck) {
  Impaired impaired("corrupt=100%");
  impaired.send(0, 10);
  Batch tiny;
  tiny.add(testing::example_envelope(), Bytes(5), true);
  impaired.impair.send(tiny.get(), {});
  EXPECT_EQ(impaired.impair.counts().corrupted, 0U);
  EXPECT_EQ(impaired.sink.texts()[3], "datagram 3");
}

TEST(Impair, KeepsTheNetworkHeaderOfWhatItHolds) {
  Impaired impaired("delay=1ms");
  const auto header = testing::bytes_of("IP and UDP");
  Batch batch;
  batch.add(testing::example_envelope(), testing::bytes_of("x"), true).network_header = header;
  impaired.impair.send(batch.get(), {});
  impaired.impair.on_timeout({1'000'000});
  EXPECT_THAT(impaired.sink.headers, ElementsAre("IP and UDP"));
}

TEST(Impair, MarksWhatIsEcnCapableAsOftenAsAsked) {
  Impaired impaired("mark=10%,seed=4");
  for (int i = 0; i < 10'000; ++i) {
    Envelope envelope = testing::example_envelope();
    envelope.traffic_class = static_cast<std::uint8_t>(0xb8 | (i % 4));
    Batch batch;
    batch.add(envelope, testing::bytes_of("x"), true);
    ASSERT_EQ(impaired.impair.send(batch.get(), {}).taken, 1U);
  }
  std::array<int, 4> marked{};
  for (std::size_t i = 0; i < 10'000; ++i) {
    EXPECT_EQ(impaired.sink.traffic_classes[i] & 0xfc, 0xb8) << "what is not ECN stays";
    if ((impaired.sink.traffic_classes[i] & 3) == 3) ++marked[i % 4];
  }
  EXPECT_EQ(marked[0], 0) << "not capable";
  EXPECT_NEAR(marked[1], 250, 60);
  EXPECT_NEAR(marked[2], 250, 60);
  EXPECT_EQ(marked[3], 2'500) << "a mark stays a mark";
}

// The capture shows headers; a mark must be in them, under a checksum that holds.
TEST(Impair, MarksTheIpHeaderToo) {
  Impaired impaired("mark=100%");
  Envelope envelope = testing::example_envelope();
  envelope.traffic_class = 0x02;
  // The checksum of 4502 and nothing else.
  Bytes ipv4(28);
  ipv4[0] = std::byte{0x45};
  ipv4[1] = std::byte{0x02};
  ipv4[10] = std::byte{0xba};
  ipv4[11] = std::byte{0xfd};
  Bytes ipv6(48);
  ipv6[0] = std::byte{0x60};
  ipv6[1] = std::byte{0x20};
  for (const Bytes& header : {ipv4, ipv6}) {
    Batch batch;
    batch.add(envelope, testing::bytes_of("x"), true).network_header = header;
    impaired.impair.send(batch.get(), {});
  }
  ASSERT_EQ(impaired.sink.headers.size(), 2U);
  const std::string& four = impaired.sink.headers[0];
  EXPECT_EQ(four.substr(0, 2), "\x45\x03");
  EXPECT_EQ(four.substr(10, 2), "\xba\xfc");
  EXPECT_EQ(impaired.sink.headers[1].substr(0, 2), "\x60\x30");
  EXPECT_EQ(impaired.impair.counts().marked, 2U);
}

TEST(Impair, CountsWhatItCannotHold) {
  Impaired impaired("delay=1ms", 10);
  impaired.send(0, 15);
  EXPECT_EQ(impaired.drops.of(Drop::kImpairOverflow), 5U);
  EXPECT_EQ(impaired.impair.counts().overflowed, 5U);
}

TEST(Impair, DecidesOnceForADatagramThatMetAFullQueue) {
  Impaired patient("loss=30%,dup=30%,seed=11");
  Impaired plain("loss=30%,dup=30%,seed=11");
  for (int i = 0; i < 200; ++i) {
    const Batch batch({"datagram " + std::to_string(i)});
    patient.sink.room = 0;
    patient.impair.send(batch.get(), {});
    patient.sink.room = 1000;
    if (patient.impair.counts().seen == static_cast<std::uint64_t>(i)) {
      EXPECT_EQ(patient.impair.send(batch.get(), {}).taken, 1U);
    }
  }
  plain.send(0, 200);
  EXPECT_EQ(patient.sink.texts(), plain.sink.texts());
  EXPECT_EQ(patient.impair.counts(), plain.impair.counts());
}

TEST(Impair, TriesAgainWithWhatWasDueWhenTheQueueWasFull) {
  Impaired impaired("delay=1ms");
  impaired.send(0, 3);
  impaired.sink.room = 1;
  impaired.impair.on_timeout({1'000'000});
  EXPECT_EQ(impaired.sink.all.size(), 1U);
  ASSERT_TRUE(impaired.impair.next_timeout());
  impaired.sink.room = 10;
  impaired.impair.on_timeout({10'000'000});
  EXPECT_EQ(impaired.sink.all.size(), 3U);
  EXPECT_EQ(impaired.drops.total(), 0U);
}

}  // namespace
}  // namespace verbena::transport
