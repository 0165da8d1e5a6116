#include "sim/connected_world.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

namespace verbena::sim {
namespace {

using namespace engine;

constexpr std::size_t kStations = 2;
constexpr std::uint64_t kSharedMark = 1ULL << 32;

std::size_t memory_for(const WorldPlan& plan) {
  std::size_t sum = 4096;
  if (plan.datagrams) sum += DatagramStream::memory_for_sender() + DatagramStream::memory_for_receiver();
  for (const Agreement& agreement : plan.connections) {
    // The end's own buffers and what it grants; each for one direction.
    sum += 2 * Stream::memory_for(plan.longest, agreement.depth);
    sum += (plan.longest + 2 * Station::kGuardSize) * std::size_t{plan.receives};
  }
  return sum + (plan.longest + 2 * Station::kGuardSize) * std::size_t{plan.station_receives};
}

}  // namespace

// --- what every packet keeps to

void WireWatch::on_request(const wire::Packet& packet) {
  const Psn psn = packet.bth.psn;
  std::uint32_t psns = 1;
  if (wire::row_of(packet.bth.opcode).operation == wire::Operation::kReadRequest) {
    psns = std::max(1U, (packet.reth.length + agreement_.mtu - 1) / agreement_.mtu);
  }
  if (!std::exchange(begun_, true)) highest_ = answered_ = psn;
  ASSERT_LE(psn.distance_from(highest_), 0) << "a PSN is left out";
  if ((psn + psns).distance_from(highest_) > 0) {
    highest_ = psn + psns;
    if (wire::row_of(packet.bth.opcode).ends_message()) ++messages_;
  }
  ASSERT_LE(packet.payload.size(), agreement_.mtu);
  if (!agreement_.is_reliable()) return;
  // Counted from what was answered, which the requester may not have heard of yet: never more than its window.
  ASSERT_LE(highest_.distance_from(answered_), static_cast<std::int32_t>(agreement_.window)) << "beyond the window";
}

void WireWatch::on_response(const wire::Packet& packet) {
  const Psn psn = packet.bth.psn;
  ASSERT_TRUE(begun_) << "an answer to nothing";
  const bool is_selective = packet.bth.opcode == wire::Opcode::kSelectiveAcknowledge;  // its PSN is the first missing
  ASSERT_LT(psn.distance_from(highest_), is_selective ? 1 : 0) << "an answer to what was never sent";
  if (is_selective) {
    ASSERT_TRUE(agreement_.both_repeat()) << "a standard peer is told what it does not know";
  }
  bool acknowledges = !is_selective;
  if (wire::row_of(packet.bth.opcode).headers.has(wire::Header::kAeth)) {
    ASSERT_LE(packet.aeth.msn, messages_) << "more messages done than there are";
    ASSERT_GE(packet.aeth.msn, msn_) << "the MSN went back";
    msn_ = packet.aeth.msn;
    acknowledges = acknowledges && packet.aeth.syndrome.kind() == wire::SyndromeKind::kAck;
  }
  const Psn end = acknowledges ? psn + 1 : psn;
  if (end.distance_from(answered_) > 0) answered_ = end;
}

// --- the world

ConnectedWorld::ConnectedWorld(std::uint64_t seed, const WorldPlan& plan)
    : plan_(plan), random_(seed), network_(seed + 1, plan.impairment) {
  for (std::uint8_t number = 1; number <= kStations; ++number) {
    stations_.push_back(std::make_unique<Station>(number, network_, memory_for(plan)));
  }
  for (std::size_t i = 0; i < plan.connections.size(); ++i) {
    for (const auto& station : stations_) station->add_connection(plan.connections[i], plan.shared_receives);
    for (std::size_t s = 0; s < kStations; ++s) {
      stations_[s]->connect(i, *stations_[1 - s]);
      streams_.push_back(std::make_unique<Stream>(*stations_[s], *stations_[1 - s], i, plan.longest));
      watches_.emplace_back(plan.connections[i]);
      if (!plan.shared_receives && !plan.connections[i].is_xrc()) {
        add_receives(*stations_[s], i, false, plan.receives);
      }
    }
  }
  if (plan.datagrams) add_datagrams();
  for (std::size_t s = 0; s < kStations; ++s) {
    const bool shares =
        plan.shared_receives || std::any_of(plan.connections.begin(), plan.connections.end(),
                                            [](const Agreement& agreement) { return agreement.is_xrc(); });
    if (shares) add_receives(*stations_[s], 0, true, plan.station_receives);
    stations_[s]->watch([this, s](std::size_t connection, const wire::Packet& packet) {
      if (packet.bth.opcode == wire::Opcode::kCnp) return;
      if (wire::row_of(packet.bth.opcode).is_response()) {
        watch_from(1 - s, connection).on_response(packet);
      } else {
        watch_from(s, connection).on_request(packet);
      }
    });
  }
}

void ConnectedWorld::add_datagrams() {
  for (const auto& station : stations_) station->add_datagrams();
  const int copies = plan_.impairment.duplication > 0 ? 2 : 1;
  for (std::size_t s = 0; s < kStations; ++s) {
    datagrams_.push_back(std::make_unique<DatagramStream>(*stations_[s], *stations_[1 - s], copies));
  }
}

void ConnectedWorld::add_receives(Station& station, std::size_t connection, bool shared, std::uint32_t count) {
  Receives receives{&station, connection, shared, {}};
  for (std::uint32_t i = 0; i < count; ++i) receives.all.push_back({{}, station.take_memory(plan_.longest), false});
  receives_.push_back(std::move(receives));
}

void ConnectedWorld::post_receives(Receives& receives, bool all) {
  for (std::size_t i = 0; i < receives.all.size(); ++i) {
    Receive& receive = receives.all[i];
    if (receive.posted || (!all && random_() % 3 == 0)) continue;
    std::fill(receive.buffer.begin(), receive.buffer.end(), Station::kGuard);
    const std::size_t first = random_() % (receive.buffer.size() + 1);
    receive.pieces = {receive.buffer.subspan(first), {}, receive.buffer.first(first)};
    std::vector<Sge> sges;
    for (const auto piece : receive.pieces) sges.push_back(receives.station->sge(piece));
    Station& station = *receives.station;
    const int error = receives.shared ? station.shared_receives().post(i | kSharedMark, sges)
                                      : station.queue_pair(receives.connection).post_receive(i, sges);
    if (error == 0) receive.posted = true;
  }
}

void ConnectedWorld::take_completions(std::size_t index) {
  Station& station = *stations_[index];
  while (const auto completion = station.send_completions().poll()) {
    const auto connection = station.connection_of(completion->qp_number);
    ASSERT_TRUE(connection);
    stream_from(index, *connection).on_completion(*completion);
    completions_digest_ = (completions_digest_ ^ completion->wr_id) * 0x100000001b3;
    if (::testing::Test::HasFatalFailure()) return;
  }
  while (const auto completion = station.receive_completions().poll()) {
    const auto connection = station.connection_of(completion->qp_number);
    ASSERT_TRUE(connection);
    const auto own = std::find_if(receives_.begin(), receives_.end(), [&](const Receives& receives) {
      const bool shared = (completion->wr_id & kSharedMark) != 0;
      return receives.station == &station && receives.shared == shared &&
             (shared || receives.connection == *connection);
    });
    Receive& receive = own->all.at(completion->wr_id & ~kSharedMark);
    ASSERT_TRUE(std::exchange(receive.posted, false)) << "a receive completes twice";
    stream_from(1 - index, *connection).on_received(*completion, receive.pieces);
    completions_digest_ = (completions_digest_ ^ completion->wr_id ^ completion->byte_length) * 0x100000001b3;
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void ConnectedWorld::post() {
  for (const auto& stream : streams_) {
    if (random_() % 3 == 0) stream->post(random_);
  }
  for (const auto& datagrams : datagrams_) {
    if (random_() % 3 == 0) datagrams->post(random_);
  }
}

void ConnectedWorld::step(bool posting) {
  if (posting) post();
  if (plan_.late_receives && random_() % 64 == 0) starved_ = !starved_;
  if (!starved_ || !posting) {
    for (Receives& receives : receives_) post_receives(receives, !plan_.late_receives || !posting);
    for (const auto& datagrams : datagrams_) datagrams->post_receives();
  }
  for (std::size_t i = 0; i < kStations; ++i) {
    stations_[i]->run_timers(now_);
    stations_[i]->transmit(now_, random_, !plan_.full_transport);
  }
}

// To the next moment: soon while there is something to post, else when something happens.
void ConnectedWorld::advance(bool posting) {
  Instant next = now_ + Duration(static_cast<std::int64_t>(random_() % 2'000));
  const bool waits = std::none_of(stations_.begin(), stations_.end(), [](const auto& s) { return s->has_work(); });
  if (!posting && waits && network_.idle()) {
    for (const auto& station : stations_) {
      if (const auto timer = station->next_timer())
        next = std::max(next, std::min(*timer, now_ + Duration(10'000'000)));
    }
  }
  now_ = next;
  network_.run_until(now_);
  for (std::size_t i = 0; i < kStations; ++i) take_completions(i);
  for (const auto& datagrams : datagrams_) datagrams->take_completions();
}

bool ConnectedWorld::at_rest() const {
  return network_.idle() && std::all_of(stations_.begin(), stations_.end(), [](const auto& station) {
           return !station->has_work() && !station->next_timer();
         });
}

std::string ConnectedWorld::in_words() const {
  std::string words = "at " + std::to_string(now_.ns) + " ns";
  for (std::size_t s = 0; s < kStations; ++s) {
    for (std::size_t i = 0; i < stations_[s]->connections(); ++i) {
      QueuePair& qp = stations_[s]->queue_pair(i);
      const StreamCounts& counts = streams_[2 * i + s]->counts();
      words += "; station " + std::to_string(s) + " connection " + std::to_string(i) + " " +
               std::string(name_of(qp.type())) + " " + std::string(name_of(qp.state())) + " posted " +
               std::to_string(counts.posted) + " completed " + std::to_string(counts.completed) +
               (qp.has_untransmitted() ? " has requests" : "") +
               (stations_[s]->receiver(i).has_responses() ? " has responses" : "") +
               (qp.next_timeout() ? " timer " + std::to_string(qp.next_timeout()->ns) : "");
    }
  }
  return words;
}

WorldOutcome ConnectedWorld::run(std::uint64_t packets, std::uint64_t requests) {
  const auto sent = [this] { return stations_[0]->packets_sent() + stations_[1]->packets_sent(); };
  const auto posted = [this] {
    std::uint64_t sum = 0;
    for (const auto& stream : streams_) sum += stream->counts().posted;
    return sum;
  };
  constexpr std::uint64_t kPatience = 400'000;  // steps in which nothing is sent
  std::uint64_t stuck_since = 0;
  std::uint64_t sent_then = 0;
  bool posting = true;
  for (std::uint64_t steps = 0; posting || !at_rest(); ++steps) {
    posting = posting && sent() < packets && posted() < requests;
    step(posting);
    if (::testing::Test::HasFailure()) return {};
    if (std::exchange(sent_then, sent()) != sent_then) stuck_since = steps;
    if (steps - stuck_since > kPatience) {
      ADD_FAILURE() << "no end: " << in_words();
      return {};
    }
    advance(posting);
  }
  WorldOutcome outcome;
  for (const auto& stream : streams_) {
    stream->check_at_rest();
    outcome.streams.push_back(stream->counts());
  }
  for (const auto& datagrams : datagrams_) {
    datagrams->check_at_rest();
    outcome.datagrams.push_back(datagrams->counts());
  }
  outcome.digest = completions_digest_;
  for (const auto& station : stations_) {
    EXPECT_TRUE(station->guards_are_whole()) << "bytes were written where nobody may";
    outcome.packets += station->packets_sent();
    outcome.retransmissions += station->events(TransportEvent::kRetransmission);
    outcome.timeouts += station->events(TransportEvent::kTimeout);
    outcome.rnr_naks += station->events(TransportEvent::kRnrNakSent);
    outcome.sequence_naks += station->events(TransportEvent::kSequenceNakReceived);
    outcome.duplicates += station->events(TransportEvent::kDuplicateRequest);
    outcome.cnps += station->events(TransportEvent::kCnpHandled);
    outcome.sent_again += station->events(TransportEvent::kSentAgain);
    outcome.kept_early += station->events(TransportEvent::kKeptEarly);
    outcome.selective_acks += station->events(TransportEvent::kSelectiveAckSent);
    outcome.damaged += station->drops(Drop::kIcrcMismatch);
    outcome.digest ^= station->digest();
  }
  return outcome;
}

}  // namespace verbena::sim
