// Several connections into one host, whose link is the bottleneck: its queue marks, and the senders slow down. They
// share the link, and nothing is lost; without congestion control the queue overflows.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/network.h"
#include "sim/station.h"

namespace verbena::sim {
namespace {

using engine::SendOpcode;

constexpr Duration kMillisecond{1'000'000};
constexpr std::uint32_t kMessage = 65'536;

struct IncastPlan {
  std::size_t senders = 2;
  SendOpcode opcode = SendOpcode::kRdmaWrite;  // or a read: then the bytes flow the other way
  Link link;
  bool minds_congestion = true;
  Duration warm_up = 40 * kMillisecond;
  Duration measured = 60 * kMillisecond;
};

struct IncastOutcome {
  std::vector<double> goodput;  // bits a second of each flow
  LinkCounts link;
  std::uint64_t retransmissions = 0;
  std::uint64_t cnps = 0;

  double sum() const {
    double sum = 0;
    for (const double one : goodput) sum += one;
    return sum;
  }
  // 1 where all are equal, 1/n where one has all (Jain, Chiu, Hawe 1984).
  double fairness() const {
    double squares = 0;
    for (const double one : goodput) squares += one * one;
    return squares == 0 ? 0 : sum() * sum() / (static_cast<double>(goodput.size()) * squares);
  }
  std::string in_words() const {
    return std::to_string(sum() / 1e9) + " Gbit/s, fairness " + std::to_string(fairness()) + ", " +
           std::to_string(link.overflowed) + " lost, " + std::to_string(link.marked) + " of " +
           std::to_string(link.carried) + " marked, longest queue " + std::to_string(link.longest_queue) + " bytes, " +
           std::to_string(retransmissions) + " times sent again, " + std::to_string(cnps) + " CNPs";
  }
};

class Incast {
 public:
  explicit Incast(const IncastPlan& plan, std::uint64_t seed = 1)
      : plan_(plan), random_(seed), network_(seed, {.least_delay = Duration(2'000), .most_delay = Duration(2'000)}) {
    Agreement agreement;
    agreement.timeout = 14;
    agreement.depth = 8;
    agreement.signal_all = true;
    agreement.minds_congestion = plan.minds_congestion;
    for (std::size_t i = 0; i <= plan.senders; ++i) {
      const std::size_t memory = 4 * (kMessage + 2 * Station::kGuardSize) * (plan.senders + 1);
      stations_.push_back(std::make_unique<Station>(static_cast<std::uint8_t>(i + 1), network_, memory));
      network_.attach(stations_[i]->address(), plan.link);
    }
    Station& sink = *stations_[0];
    // A connection has the same number at both ends.
    for (std::size_t flow = 0; flow < plan.senders; ++flow) {
      Station& source = *stations_[flow + 1];
      sink.add_connection(agreement, false);
      for (std::size_t i = 0; i <= flow; ++i) source.add_connection(agreement, false);
      sink.connect(flow, source);
      source.connect(flow, sink);
      Station& remote = reads() ? source : sink;
      remote_.push_back(remote.grant(remote.take_memory(kMessage)));
      local_.push_back((reads() ? sink : source).take_memory(kMessage));
    }
  }

  IncastOutcome run() {
    run_until(now_ + plan_.warm_up);
    network_.forget_counts(stations_[0]->address());
    done_.assign(plan_.senders, 0);
    run_until(now_ + plan_.measured);
    IncastOutcome outcome;
    outcome.link = network_.counts(stations_[0]->address());
    for (const std::uint64_t bytes : done_) {
      outcome.goodput.push_back(static_cast<double>(bytes) * 8e9 / static_cast<double>(plan_.measured.count()));
    }
    for (const auto& station : stations_) {
      outcome.retransmissions += station->events(engine::TransportEvent::kRetransmission);
      outcome.cnps += station->events(engine::TransportEvent::kCnpHandled);
    }
    return outcome;
  }

 private:
  bool reads() const { return plan_.opcode == SendOpcode::kRdmaRead; }
  Station& poster(std::size_t flow) { return *stations_[reads() ? 0 : flow + 1]; }

  void post() {
    for (std::size_t flow = 0; flow < plan_.senders; ++flow) {
      Station& station = poster(flow);
      const engine::Sge sge = station.sge(local_[flow]);
      engine::SendRequest request;
      request.opcode = plan_.opcode;
      request.wr_id = flow;
      request.sges = {&sge, 1};
      request.remote_address = remote_[flow].address;
      request.rkey = remote_[flow].key;
      while (station.queue_pair(flow).send_room() != 0) ASSERT_EQ(station.queue_pair(flow).post_send(request), 0);
    }
  }
  void transmit() {
    for (const auto& station : stations_) {
      station->run_timers(now_);
      std::uint64_t before = 0;
      do {
        before = station->packets_sent();
        station->transmit(now_, random_, true);
      } while (station->packets_sent() != before);
    }
  }
  void take_completions() {
    for (const auto& station : stations_) {
      while (const auto completion = station->send_completions().poll()) {
        ASSERT_EQ(completion->status, engine::WcStatus::kSuccess);
        done_.at(completion->wr_id) += kMessage;
      }
    }
  }
  void run_until(Instant end) {
    done_.resize(plan_.senders);
    while (now_ < end && !::testing::Test::HasFatalFailure()) {
      post();
      transmit();
      std::optional<Instant> next;
      const auto consider = [&next](std::optional<Instant> due) {
        if (due && (!next || *due < *next)) next = due;
      };
      if (!network_.idle()) consider(network_.next_arrival());
      for (const auto& station : stations_) {
        consider(station->next_timer());
        consider(station->next_departure());
      }
      ASSERT_TRUE(next) << "nothing happens any more";
      now_ = std::max(now_ + Duration(1), *next);
      network_.run_until(now_);
      take_completions();
    }
  }

  const IncastPlan plan_;
  std::mt19937_64 random_;
  Network network_;
  std::vector<std::unique_ptr<Station>> stations_;  // the first is where the bytes go
  std::vector<Station::Grant> remote_;
  std::vector<std::span<std::byte>> local_;
  std::vector<std::uint64_t> done_;
  Instant now_{1'000'000};
};

IncastOutcome run(const IncastPlan& plan, const std::string& name, std::uint64_t seed = 1) {
  IncastOutcome outcome = Incast(plan, seed).run();
  std::cout << name << ": " << outcome.in_words() << "\n";
  return outcome;
}

TEST(CongestionSim, OneSenderHasTheWholeLink) {
  IncastPlan plan;
  plan.senders = 1;
  const IncastOutcome outcome = run(plan, "one writer");
  EXPECT_GT(outcome.sum(), 9e9);
  EXPECT_EQ(outcome.cnps, 0U);
  EXPECT_EQ(outcome.retransmissions, 0U);
}

class CongestionSimTest : public ::testing::TestWithParam<SendOpcode> {};

TEST_P(CongestionSimTest, OnceSettledTwoAndEightShareALinkAndNothingIsLost) {
  for (const std::size_t senders : {std::size_t{2}, std::size_t{8}}) {
    IncastPlan plan;
    plan.senders = senders;
    plan.opcode = GetParam();
    const IncastOutcome outcome =
        run(plan, std::to_string(senders) + (plan.opcode == SendOpcode::kRdmaRead ? " readers" : " writers"));
    EXPECT_GT(outcome.sum(), 7e9) << senders;
    EXPECT_GT(outcome.fairness(), 0.85) << senders;
    EXPECT_EQ(outcome.link.overflowed, 0U) << senders;
    EXPECT_GT(outcome.cnps, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, CongestionSimTest,
                         ::testing::Values(SendOpcode::kRdmaWrite, SendOpcode::kRdmaRead), [](const auto& instance) {
                           return instance.param == SendOpcode::kRdmaRead ? "Reads" : "Writes";
                         });

}  // namespace
}  // namespace verbena::sim
