// Connections, and datagrams beside them, over a bad network. Whatever the network does: on a reliable connection each
// request completes once, in order, with its bytes where they belong and each atomic applied once; on an unreliable one
// a message arrives whole or not at all, and in order; a datagram arrives whole, as often as the network delivers it;
// and the same seed gives the same run.
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "sim/connected_world.h"

namespace verbena::sim {
namespace {

using engine::QpType;

constexpr std::array<std::uint32_t, 5> kMtus{256, 512, 1024, 2048, 4096};
constexpr std::array<std::uint32_t, 5> kWindows{2, 5, 16, 64, 128};
constexpr std::array<std::uint8_t, 5> kReads{1, 2, 4, 7, 16};

struct Weather {
  std::string name;
  Impairment impairment;

  friend std::ostream& operator<<(std::ostream& out, const Weather& weather) { return out << weather.name; }
};

const std::vector<Weather>& weathers() {
  static const std::vector<Weather> kAll{{"Fine", {}},
                                         {"Lossy", {.loss = 0.03}},
                                         {"Damaging", {.corruption = 0.02}},
                                         {"Duplicating", {.duplication = 0.1}},
                                         {"Reordering", {.reordering = 0.05}},
                                         {"Congested", {.marking = 0.05}},
                                         {"Uneven", {.least_delay = Duration(500), .most_delay = Duration(8'000)}},
                                         {"Foul",
                                          {.loss = 0.02,
                                           .duplication = 0.03,
                                           .least_delay = Duration(200),
                                           .most_delay = Duration(5'000),
                                           .corruption = 0.01,
                                           .marking = 0.01,
                                           .reordering = 0.02}}};
  return kAll;
}

// Everything that two ends may agree on, as the seed says.
WorldPlan plan_of(std::uint64_t seed, const Impairment& impairment) {
  std::mt19937_64 random(seed);
  WorldPlan plan;
  plan.impairment = impairment;
  const std::size_t count = 1 + random() % 3;
  for (std::size_t i = 0; i < count; ++i) {
    Agreement agreement;
    constexpr std::array kTypes{QpType::kRc, QpType::kRc, QpType::kUc, QpType::kXrcSend};
    agreement.type = kTypes[random() % kTypes.size()];
    agreement.mtu = kMtus[random() % kMtus.size()];
    agreement.window = kWindows[random() % kWindows.size()];
    agreement.max_reads = kReads[random() % kReads.size()];
    agreement.timeout = static_cast<std::uint8_t>(5 + random() % 4);
    agreement.rnr_timer = static_cast<std::uint8_t>(1 + random() % 8);
    agreement.depth = static_cast<std::uint32_t>(2 + random() % 24);
    agreement.first_psn = random() % 2 == 0 ? 0xffff00 + static_cast<std::uint32_t>(random() % 256)
                                            : static_cast<std::uint32_t>(random() & 0xffffff);
    agreement.signal_all = random() % 4 == 0;
    plan.connections.push_back(agreement);
  }
  plan.longest = random() % 3 == 0 ? 40'000 : 9'000;
  plan.shared_receives = random() % 3 == 0;
  plan.late_receives = random() % 2 == 0;
  plan.full_transport = random() % 2 == 0;
  plan.datagrams = random() % 4 != 0;
  return plan;
}

// Which ends repeat selectively.
enum class Repeaters : std::uint8_t { kBoth, kOne, kNone };

WorldPlan with(WorldPlan plan, Repeaters repeaters) {
  for (Agreement& agreement : plan.connections) {
    agreement.first_repeats = repeaters != Repeaters::kNone;
    agreement.second_repeats = repeaters == Repeaters::kBoth;
  }
  return plan;
}

class ConnectionsTest : public ::testing::TestWithParam<std::tuple<Weather, Repeaters>> {
 protected:
  static WorldPlan plan(std::uint64_t seed) {
    return with(plan_of(seed, std::get<Weather>(GetParam()).impairment), std::get<Repeaters>(GetParam()));
  }
};

TEST_P(ConnectionsTest, DoWhatIsAskedOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const WorldOutcome outcome = ConnectedWorld(seed, plan(seed)).run(8'000, 3'000);
    if (HasFailure()) return;
    if (std::get<Repeaters>(GetParam()) == Repeaters::kBoth) continue;
    EXPECT_EQ(outcome.kept_early, 0U);
    EXPECT_EQ(outcome.selective_acks, 0U);
  }
}

TEST_P(ConnectionsTest, TheSameSeedIsTheSameRun) {
  const WorldPlan plan = ConnectionsTest::plan(77);
  const WorldOutcome first = ConnectedWorld(77, plan).run(4'000, 2'000);
  EXPECT_EQ(first, ConnectedWorld(77, plan).run(4'000, 2'000));
  EXPECT_NE(first, ConnectedWorld(78, plan).run(4'000, 2'000));
}

std::string name_of_run(const ::testing::TestParamInfo<ConnectionsTest::ParamType>& run) {
  constexpr std::array<const char*, 3> kNames{"BothRepeat", "OneRepeats", "NoneRepeats"};
  const auto& [weather, repeaters] = run.param;
  return weather.name + kNames[static_cast<std::size_t>(repeaters)];
}

INSTANTIATE_TEST_SUITE_P(Weathers, ConnectionsTest,
                         ::testing::Combine(::testing::ValuesIn(weathers()),
                                            ::testing::Values(Repeaters::kBoth, Repeaters::kOne, Repeaters::kNone)),
                         name_of_run);

// Long messages of every kind on one connection, and nothing else in the way.
WorldPlan long_haul(QpType type) {
  WorldPlan plan;
  Agreement agreement;
  agreement.type = type;
  agreement.timeout = 12;  // 17 ms
  agreement.depth = 24;
  agreement.window = 128;
  agreement.first_psn = 0xfffff0;
  plan.connections.push_back(agreement);
  plan.longest = 40'000;
  plan.receives = plan.station_receives = 32;
  plan.impairment.least_delay = plan.impairment.most_delay = Duration(10'000);
  return plan;
}

class LongHaulTest : public ::testing::TestWithParam<QpType> {};

TEST_P(LongHaulTest, OnePacketInAHundredLostAFewAreSentAgain) {
  WorldPlan plan = long_haul(GetParam());
  plan.impairment.loss = 0.01;
  const auto run = [&plan](Repeaters repeaters) {
    const WorldOutcome outcome = ConnectedWorld(3, with(plan, repeaters)).run(60'000, UINT64_MAX);
    std::cout << (repeaters == Repeaters::kBoth ? "selective" : "go-back-N") << ": of " << outcome.packets
              << " packets " << outcome.sent_again << " sent again, " << outcome.timeouts << " timeouts\n";
    return outcome;
  };
  const WorldOutcome selective = run(Repeaters::kBoth);
  EXPECT_LT(selective.sent_again * 8, run(Repeaters::kNone).sent_again);
  EXPECT_GT(selective.kept_early, 0U);
  EXPECT_GT(selective.selective_acks, 0U);
  // Half of the packets are requests; of the answers only those to reads are asked for again.
  EXPECT_LT(selective.sent_again, selective.packets * 3 / 100);
}

TEST_P(LongHaulTest, WhatIsOnlyOvertakenIsNotSentAgain) {
  ConnectedWorld world(4, long_haul(GetParam()));
  const WorldOutcome before = world.run(2'000, UINT64_MAX);  // in which the ends get to know each other
  ASSERT_EQ(before.sent_again, 0U);
  Impairment overtaking;
  overtaking.least_delay = overtaking.most_delay = Duration(10'000);
  overtaking.reordering = 0.05;
  world.change(overtaking);
  const WorldOutcome after = world.run(60'000, UINT64_MAX);
  EXPECT_EQ(after.sent_again, 0U);
  EXPECT_EQ(after.timeouts, 0U);
  EXPECT_GT(after.kept_early, 500U);
}

INSTANTIATE_TEST_SUITE_P(Types, LongHaulTest, ::testing::Values(QpType::kRc, QpType::kXrcSend),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(Connections, OnAFineNetworkNothingIsSentTwice) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldPlan plan = plan_of(seed, {});
    plan.late_receives = false;
    // Fewer messages may be on their way than there are receives.
    for (Agreement& agreement : plan.connections) agreement.depth = std::min(agreement.depth, 10U);
    plan.shared_receives = false;
    plan.full_transport = false;
    for (Agreement& agreement : plan.connections) agreement.timeout = 14;
    const WorldOutcome outcome = ConnectedWorld(seed, plan).run(10'000, 3'000);
    EXPECT_EQ(outcome.retransmissions, 0U);
    EXPECT_EQ(outcome.duplicates, 0U);
    EXPECT_EQ(outcome.rnr_naks, 0U);
    for (const StreamCounts& counts : outcome.streams) EXPECT_EQ(counts.messages_lost, 0U);
  }
}

// Receives come late, and a network far away: without credits each message that finds none takes all behind it along.
TEST(Connections, CreditsKeepMessagesFromBeingSentInVain) {
  WorldPlan plan;
  Agreement agreement;
  agreement.depth = 64;
  agreement.timeout = 14;
  plan.connections.push_back(agreement);
  plan.longest = 600;
  plan.late_receives = true;
  plan.receives = plan.station_receives = 4;
  plan.impairment.least_delay = plan.impairment.most_delay = Duration(100'000);
  const auto run = [&plan](bool shared) {
    plan.shared_receives = shared;  // which are not counted
    const WorldOutcome outcome = ConnectedWorld(5, plan).run(UINT64_MAX, 6'000);
    std::cout << (shared ? "without" : "with") << " credits: " << outcome.packets << " packets, " << outcome.rnr_naks
              << " RNR NAKs\n";
    return outcome.packets;
  };
  EXPECT_LT(run(false), run(true));
}

// How many packets a run has, over as many seeds as that takes; `make soak` asks for many.
TEST(ConnectionsSoak, HoldForAsManyPackets) {
  constexpr std::uint64_t kOfASeed = 50'000;
  const char* wanted = std::getenv("VERBENA_SOAK_PACKETS");
  const std::uint64_t packets = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 300'000;
  WorldOutcome sum;
  std::uint64_t seeds = 0;
  std::uint64_t requests = 0;
  DatagramCounts datagrams;
  while (sum.packets < packets) {
    const std::uint64_t seed = 1'000 + seeds++;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Weather& weather = weathers()[seed % weathers().size()];
    constexpr std::array kRepeaters{Repeaters::kBoth, Repeaters::kBoth, Repeaters::kOne, Repeaters::kNone};
    const Repeaters repeaters = kRepeaters[seed / weathers().size() % kRepeaters.size()];
    const WorldPlan plan = with(plan_of(seed, weather.impairment), repeaters);
    const WorldOutcome outcome = ConnectedWorld(seed, plan).run(kOfASeed, UINT64_MAX);
    if (HasFailure()) return;
    sum.packets += outcome.packets;
    sum.retransmissions += outcome.retransmissions;
    sum.timeouts += outcome.timeouts;
    sum.rnr_naks += outcome.rnr_naks;
    sum.sequence_naks += outcome.sequence_naks;
    sum.duplicates += outcome.duplicates;
    sum.damaged += outcome.damaged;
    sum.cnps += outcome.cnps;
    sum.sent_again += outcome.sent_again;
    sum.kept_early += outcome.kept_early;
    for (const StreamCounts& counts : outcome.streams) requests += counts.posted;
    for (const DatagramCounts& counts : outcome.datagrams) {
      datagrams.posted += counts.posted;
      datagrams.received += counts.received;
    }
  }
  std::cout << sum.packets << " packets of " << requests << " requests and " << datagrams.posted << " datagrams ("
            << datagrams.received << " received) over " << seeds << " seeds: " << sum.retransmissions
            << " times sent again, " << sum.timeouts << " timeouts, " << sum.sequence_naks << " sequence NAKs, "
            << sum.rnr_naks << " RNR NAKs, " << sum.duplicates << " duplicates, " << sum.damaged << " damaged, "
            << sum.cnps << " CNPs, " << sum.sent_again << " packets sent again, " << sum.kept_early << " kept early\n";
}

}  // namespace
}  // namespace verbena::sim
