// Datagrams between engines over a bad network. Whatever the network does: each is received at most as often as it
// arrives, with its bytes intact; each that does not is a named drop; and the same seed gives the same run.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_order.h"
#include "sim/network.h"
#include "sim/node.h"

namespace verbena::sim {
namespace {

using engine::kSendInline;
using engine::kSendSignaled;
using engine::WcStatus;

constexpr std::size_t kNodes = 3;
constexpr std::uint32_t kSendSlots = 16;
constexpr std::uint32_t kMtu = 512;

// A message carries its number and is filled from it.
std::vector<std::byte> message(std::uint64_t number, std::uint32_t length) {
  std::vector<std::byte> bytes(length);
  for (std::uint32_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(number * 31 + i * 7);
  store_be64(bytes.data(), number);
  return bytes;
}

struct Outcome {
  std::uint64_t sent = 0;
  std::uint64_t copies = 0;
  std::uint64_t received = 0;
  std::uint64_t no_receive = 0;
  std::map<std::uint64_t, int> times_received;
  std::uint64_t digest = 0;  // of everything that was received, in order

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class Traffic {
 public:
  Traffic(std::uint64_t seed, const Impairment& impairment) : random_(seed), network_(seed + 1, impairment) {
    for (std::uint8_t number = 1; number <= kNodes; ++number)
      nodes_.push_back(std::make_unique<Node>(number, network_));
  }

  Outcome run(std::uint64_t messages) {
    while (outcome_.sent < messages || !network_.idle() || anything_waits()) {
      if (outcome_.sent < messages) post();
      for (const auto& node : nodes_) {
        node->transmit(now_, random_() % 6);
        check_send_completions(*node);
        if (random_() % 4 != 0) receive(*node);
      }
      now_ = now_ + Duration(static_cast<std::int64_t>(random_() % 2'000));
      network_.run_until(now_);
    }
    for (const auto& node : nodes_) {
      receive(*node);
      outcome_.copies += node->copies_sent();
      outcome_.no_receive += node->drops(Drop::kNoReceiveRequest);
      EXPECT_EQ(node->drops(Drop::kNone) + node->drops(Drop::kNoReceiveRequest), arrivals_of(*node));
    }
    return outcome_;
  }

 private:
  bool anything_waits() const {
    for (const auto& node : nodes_) {
      if (node->queue_pair().has_untransmitted()) return true;
    }
    return false;
  }
  static std::uint64_t arrivals_of(const Node& node) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kDropCount; ++i) all += node.drops(static_cast<Drop>(i));
    return all;
  }

  void post() {
    Node& from = *nodes_[random_() % kNodes];
    Node& to = *nodes_[random_() % kNodes];  // also to itself
    const std::uint64_t number = outcome_.sent + 1;
    const auto length = static_cast<std::uint32_t>(8 + random_() % (kMtu - 7));
    const auto slot = static_cast<std::uint32_t>(number % kSendSlots);
    const auto bytes = message(number, length);
    std::uint32_t flags = kSendSignaled;
    if (length <= from.queue_pair().capabilities().max_inline_data) flags |= kSendInline;
    if (busy_[{&from, slot}]) return;
    std::copy(bytes.begin(), bytes.end(), from.send_memory(slot).begin());
    const std::uint8_t family = random_() % 2 == 0 ? 1 : 2;
    const int error = from.post_send(to, family, number, slot, length, flags);
    if (error == ENOMEM) return;
    ASSERT_EQ(error, 0);
    busy_[{&from, slot}] = true;
    lengths_[number] = length;
    ++outcome_.sent;
  }

  void check_send_completions(Node& node) {
    while (const auto completion = node.host().send_completions().poll()) {
      ASSERT_EQ(completion->status, WcStatus::kSuccess);
      ASSERT_GT(completion->wr_id, last_completed_[&node]) << "in order";
      last_completed_[&node] = completion->wr_id;
      busy_[{&node, static_cast<std::uint32_t>(completion->wr_id % kSendSlots)}] = false;
    }
  }

  void receive(Node& node) {
    while (const auto received = node.poll_received()) {
      ASSERT_EQ(received->completion.status, WcStatus::kSuccess);
      ASSERT_GE(received->payload.size(), 8U);
      const std::uint64_t number = load_be64(received->payload.data());
      ASSERT_EQ(received->payload, message(number, lengths_.at(number)));
      ++outcome_.received;
      ++outcome_.times_received[number];
      outcome_.digest = (outcome_.digest ^ number ^ static_cast<std::uint64_t>(now_.ns)) * 0x100000001b3;
    }
  }

  std::mt19937_64 random_;
  Network network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Instant now_{1'000'000};
  Outcome outcome_;
  std::map<std::pair<Node*, std::uint32_t>, bool> busy_;
  std::map<Node*, std::uint64_t> last_completed_;
  std::map<std::uint64_t, std::uint32_t> lengths_;
};

constexpr std::uint64_t kMessages = 3'000;

struct Weather {
  std::string name;
  Impairment impairment;
};

class DatagramsTest : public ::testing::TestWithParam<Weather> {};

TEST_P(DatagramsTest, ArriveIntactAndAtMostAsOftenAsTheNetworkDeliversThem) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Outcome outcome = Traffic(seed, GetParam().impairment).run(kMessages);
    EXPECT_EQ(outcome.sent, kMessages);
    EXPECT_EQ(outcome.received + outcome.no_receive, outcome.copies) << "delivered, or dropped by name";
    const bool duplicates = GetParam().impairment.duplication > 0;
    for (const auto& [number, times] : outcome.times_received) EXPECT_LE(times, duplicates ? 2 : 1) << number;
    if (HasFailure()) return;
  }
}

TEST_P(DatagramsTest, TheSameSeedIsTheSameRun) {
  const Outcome first = Traffic(42, GetParam().impairment).run(kMessages);
  const Outcome second = Traffic(42, GetParam().impairment).run(kMessages);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, Traffic(43, GetParam().impairment).run(kMessages));
}

INSTANTIATE_TEST_SUITE_P(
    Weathers, DatagramsTest,
    ::testing::Values(
        Weather{"Fine", {}}, Weather{"Lossy", {.loss = 0.05}}, Weather{"Duplicating", {.duplication = 0.2}},
        Weather{"Reordering", {.least_delay = Duration(1'000), .most_delay = Duration(200'000)}},
        Weather{"Foul", {.loss = 0.1, .duplication = 0.1, .least_delay = Duration(0), .most_delay = Duration(50'000)}}),
    [](const auto& instance) { return instance.param.name; });

TEST(Datagrams, OnAFineNetworkWithEnoughReceivesNothingIsLost) {
  Network network(1, {});
  Node one(1, network);
  Node two(2, network);
  Instant now{0};
  for (std::uint64_t number = 1; number <= 1'000; ++number) {
    const auto bytes = message(number, 64);
    std::copy(bytes.begin(), bytes.end(), one.send_memory(0).begin());
    ASSERT_EQ(one.post_send(two, 1, number, 0, 64, kSendSignaled), 0);
    one.transmit(now, 8);
    ASSERT_EQ(one.host().send_completions().poll()->wr_id, number);
    now = network.next_arrival();
    network.run_until(now);
    const auto received = two.poll_received();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->payload, bytes);
    EXPECT_EQ(received->completion.source_qp, one.queue_pair().qpn().value());
  }
  EXPECT_EQ(two.drops(Drop::kNone), 1'000U);
}

}  // namespace
}  // namespace verbena::sim
