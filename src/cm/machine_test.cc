#include "cm/machine.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_order.h"

namespace verbena::cm {
namespace {

constexpr Duration kMillisecond = std::chrono::milliseconds(1);
constexpr std::uint32_t kMask = 0xfffff;
constexpr std::uint64_t kService = 0x1061234;

Gid address(std::uint8_t last) {
  return Gid::from_ipv4(0x0a000000U + last);
}

// Two machines and a network between them that loses, doubles and delays by seed, in virtual time.
class World {
 public:
  struct Faults {
    double loss = 0;
    double doubling = 0;
    int most_delay_ms = 0;
  };
  World(std::uint64_t seed, Faults faults) : random_(seed), faults_(faults) {}

  Machine& client() { return machines_[0]; }
  Machine& server() { return machines_[1]; }
  Instant now() const { return now_; }
  Path path() const { return {address(1), address(2), 0}; }

  // Takes what both machines want to send.
  void drain() {
    for (std::size_t from = 0; from < machines_.size(); ++from) {
      while (const auto transmission = machines_[from].poll_transmit()) {
        if (chance(faults_.loss)) continue;
        const int copies = chance(faults_.doubling) ? 2 : 1;
        for (int i = 0; i < copies; ++i) flying_.push_back({now_ + delay(), 1 - from, *transmission});
      }
      while (auto event = machines_[from].poll_event()) events_[from].push_back(*event);
    }
  }

  // The next thing that happens. False where nothing ever will.
  bool step() {
    drain();
    std::optional<Instant> next;
    const auto consider = [&](std::optional<Instant> at) {
      if (at && (!next || *at < *next)) next = at;
    };
    for (const auto& flight : flying_) consider(flight.at);
    for (const auto& machine : machines_) consider(machine.next_timeout());
    if (!next) return false;
    now_ = std::max(now_, *next);
    for (auto flight = flying_.begin(); flight != flying_.end();) {
      if (flight->at > now_) {
        ++flight;
        continue;
      }
      const Flight arrived = *flight;
      flight = flying_.erase(flight);
      const Path& sent = arrived.transmission.path;
      machines_[arrived.to].on_message({sent.remote, sent.local, sent.traffic_class}, arrived.transmission.mad, now_);
    }
    for (auto& machine : machines_) machine.on_timeout(now_);
    drain();
    return true;
  }

  std::optional<Event> wait(std::size_t at, EventKind kind) {
    for (int steps = 0; steps < 10000; ++steps) {
      drain();
      auto& events = events_[at];
      const auto found = std::find_if(events.begin(), events.end(), [&](auto& event) { return event.kind == kind; });
      if (found != events.end()) {
        const Event event = *found;
        events.erase(found);
        return event;
      }
      if (!step()) return std::nullopt;
    }
    return std::nullopt;
  }

  std::size_t left(std::size_t at) const { return events_[at].size(); }
  // Runs until nothing is due any more.
  void settle() {
    for (int steps = 0; steps < 10000 && step(); ++steps) {
    }
  }

 private:
  struct Flight {
    Instant at;
    std::size_t to;
    Transmission transmission;
  };
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
  Duration delay() {
    return std::uniform_int_distribution<>(0, faults_.most_delay_ms)(random_) * kMillisecond + kMillisecond;
  }

  std::mt19937_64 random_;
  Faults faults_;
  Instant now_{1'000'000'000};
  std::array<Machine, 2> machines_{Machine(0x10000000, kMask, 7), Machine(0x20000000, kMask, 7)};
  std::vector<Flight> flying_;
  std::array<std::vector<Event>, 2> events_;
};

constexpr std::size_t kClient = 0;
constexpr std::size_t kServer = 1;

struct Pair {
  ConnectionId client = 0;
  ConnectionId server = 0;
};

// A connection as two programs make it.
void connect(World& world, Pair& pair) {
  pair.client = world.client().connect(world.path(), {.service_id = kService, .local_qpn = Qpn(17)}, world.now());
  const auto request = world.wait(kServer, EventKind::kRequested);
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<wire::ConnectRequest>(request->message).local_qpn, Qpn(17));
  EXPECT_EQ(request->path.remote, address(1));
  pair.server = request->id;
  ASSERT_TRUE(world.server().ask_for_time(request->id));
  ASSERT_TRUE(world.server().reply(request->id, {.local_qpn = Qpn(18)}, world.now()));
  const auto reply = world.wait(kClient, EventKind::kReplied);
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<wire::ConnectReply>(reply->message).local_qpn, Qpn(18));
  ASSERT_TRUE(world.client().establish(pair.client, world.now()));
  ASSERT_TRUE(world.wait(kServer, EventKind::kEstablished));
}

TEST(Machine, ConnectsAndDisconnects) {
  World world(1, {});
  Pair pair;
  connect(world, pair);
  ASSERT_TRUE(world.client().disconnect(pair.client, world.now()));
  ASSERT_TRUE(world.wait(kServer, EventKind::kDisconnected));
  ASSERT_TRUE(world.server().disconnect(pair.server, world.now()));
  const auto told = world.wait(kClient, EventKind::kDisconnected);
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->timed_out);
  EXPECT_TRUE(world.wait(kClient, EventKind::kTimeWaitOver));
  EXPECT_TRUE(world.wait(kServer, EventKind::kTimeWaitOver));
  EXPECT_EQ(world.client().size() + world.server().size(), 0U);
}

TEST(Machine, HasBothEndsAgreeOverABadNetwork) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, {.loss = 0.3, .doubling = 0.3, .most_delay_ms = 600});
    Pair pair;
    connect(world, pair);
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(world.client().disconnect(pair.client, world.now()));
    ASSERT_TRUE(world.wait(kServer, EventKind::kDisconnected));
    ASSERT_TRUE(world.server().disconnect(pair.server, world.now()));
    ASSERT_TRUE(world.wait(kClient, EventKind::kDisconnected));
    world.settle();
    EXPECT_EQ(world.client().size() + world.server().size(), 0U);
    // What came twice told nobody twice: one end of the time wait each is all that is left.
    EXPECT_LE(world.left(kClient), 1U);
    EXPECT_LE(world.left(kServer), 2U);
  }
}

TEST(Machine, TellsWhoeverAsksWhereNobodyIs) {
  World world(1, {.loss = 1});
  world.client().connect(world.path(), {.service_id = kService}, world.now());
  const Instant began = world.now();
  EXPECT_TRUE(world.wait(kClient, EventKind::kUnreachable));
  EXPECT_GT(world.now() - began, std::chrono::seconds(30));
  EXPECT_LT(world.now() - began, std::chrono::seconds(90));
  EXPECT_EQ(world.client().size(), 0U);
}

TEST(Machine, WaitsLongerWhenThePeerAsksForTime) {
  World world(1, {});
  world.client().connect(world.path(), {.service_id = kService}, world.now());
  const auto request = world.wait(kServer, EventKind::kRequested);
  ASSERT_TRUE(request);
  ASSERT_TRUE(world.server().ask_for_time(request->id));
  const Instant began = world.now();
  EXPECT_TRUE(world.wait(kClient, EventKind::kUnreachable));
  EXPECT_GT(world.now() - began, std::chrono::seconds(68));
}

// A request that comes again after its listener is gone would be refused, though it is about to be accepted.
TEST(Machine, IsNotAskedAgainWhileItTakesItsTime) {
  World world(1, {});
  world.client().connect(world.path(), {.service_id = kService}, world.now());
  const auto request = world.wait(kServer, EventKind::kRequested);
  ASSERT_TRUE(request);
  ASSERT_TRUE(world.server().ask_for_time(request->id));
  ASSERT_TRUE(world.step());
  ASSERT_TRUE(world.client().next_timeout());
  EXPECT_GT(*world.client().next_timeout() - world.now(), std::chrono::seconds(60));
}

template <class Message>
std::optional<Message> sent_by(Machine& machine) {
  while (const auto transmission = machine.poll_transmit()) {
    const auto decoded = wire::decode_connection_message(transmission->mad);
    if (decoded && std::holds_alternative<Message>(*decoded)) return std::get<Message>(*decoded);
  }
  return std::nullopt;
}

TEST(Machine, IsRejectedAlsoWhereItTookItForEstablished) {
  World world(1, {});
  Pair pair;
  connect(world, pair);
  const auto taken_back = wire::encode_connection_message(
      wire::Rejection{
          .local_id = pair.server, .remote_id = pair.client, .message = wire::Answered::kReply, .reason = 4},
      1);
  EXPECT_EQ(world.client().on_message({address(1), address(2), 0}, taken_back, world.now()), Reception::kTaken);
  EXPECT_TRUE(world.wait(kClient, EventKind::kRejected));
  EXPECT_FALSE(world.client().state_of(pair.client));
}

TEST(Machine, RefusesAReplyToWhatIsNotThere) {
  World world(1, {});
  const auto reply = wire::encode_connection_message(wire::ConnectReply{.local_id = 5, .remote_id = 77}, 1);
  EXPECT_EQ(world.client().on_message({address(1), address(2), 0}, reply, world.now()), Reception::kFitsNothing);
  const auto refusal = sent_by<wire::Rejection>(world.client());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->remote_id, 5U);
  EXPECT_EQ(refusal->reason, static_cast<std::uint16_t>(Reason::kInvalidCommunicationId));
}

// InfiniBand Architecture 12.6.7.2: by the GUID of the device, and the number that it has there.
TEST(Machine, NamesItsDeviceWhereItGaveUp) {
  World world(1, {});
  constexpr std::uint64_t kGuid = 0x0200'00ff'fe00'0001;
  const ConnectionId id =
      world.client().connect(world.path(), {.service_id = kService, .local_guid = kGuid}, world.now());
  world.client().release(id, world.now());
  const auto rejection = sent_by<wire::Rejection>(world.client());
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->reason, static_cast<std::uint16_t>(Reason::kTimeout));
  EXPECT_EQ(rejection->information_length, sizeof kGuid);
  EXPECT_EQ(load_be64(rejection->information.data()), kGuid);
}

TEST(Machine, KeepsNothingOfServicesThatItRefused) {
  World world(1, {});
  for (int i = 0; i < 10; ++i) {
    world.client().ask(world.path(), {.service_id = 0x1110007}, world.now());
    const auto request = world.wait(kServer, EventKind::kServiceRequested);
    ASSERT_TRUE(request);
    ASSERT_TRUE(world.server().reject(request->id, Reason::kInvalidServiceId, {}, world.now()));
    world.server().release(request->id, world.now());
    EXPECT_EQ(world.server().size(), 0U);
  }
}

TEST(Machine, OtherEndsLeaveRoomForItsOwn) {
  Machine machine(0x20000000, kMask, 7);
  Reception last = Reception::kTaken;
  for (std::uint32_t i = 1; i <= Machine::kMostOfOthers + 1; ++i) {
    const auto request = wire::encode_connection_message(wire::ConnectRequest{.local_id = i}, i);
    last = machine.on_message({address(2), address(1), 0}, request, Instant{1});
  }
  EXPECT_EQ(last, Reception::kFull);
  EXPECT_NE(machine.connect({address(2), address(1), 0}, {}, Instant{1}), 0U);
}

TEST(Machine, RejectsWithWordsOfTheProgram) {
  World world(1, {});
  const ConnectionId id = world.client().connect(world.path(), {.service_id = kService}, world.now());
  const auto request = world.wait(kServer, EventKind::kRequested);
  ASSERT_TRUE(request);
  const std::array<std::byte, 2> words{std::byte{'n'}, std::byte{'o'}};
  ASSERT_TRUE(world.server().reject(request->id, Reason::kConsumer, words, world.now()));
  const auto rejected = world.wait(kClient, EventKind::kRejected);
  ASSERT_TRUE(rejected);
  const auto& rejection = std::get<wire::Rejection>(rejected->message);
  EXPECT_EQ(rejection.reason, 28);
  EXPECT_EQ(rejection.private_data[1], std::byte{'o'});
  EXPECT_FALSE(world.client().state_of(id));
  EXPECT_EQ(world.server().size(), 0U);
}

TEST(Machine, TellsThePeerOfWhatItsOwnerForgot) {
  World world(1, {});
  Pair pair;
  connect(world, pair);
  world.client().release(pair.client, world.now());
  EXPECT_TRUE(world.wait(kServer, EventKind::kDisconnected));
  world.server().release(pair.server, world.now());
  world.settle();
  EXPECT_EQ(world.client().size() + world.server().size(), 0U);
  EXPECT_EQ(world.left(kClient), 0U);
}

TEST(Machine, AnswersForServicesOverABadNetwork) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed, {.loss = 0.3, .doubling = 0.5, .most_delay_ms = 300});
    world.client().ask(world.path(), {.service_id = 0x1110007}, world.now());
    const auto request = world.wait(kServer, EventKind::kServiceRequested);
    ASSERT_TRUE(request);
    ASSERT_TRUE(world.server().answer(request->id, {.qpn = Qpn(99), .qkey = 5}, world.now()));
    const auto answer = world.wait(kClient, EventKind::kServiceReplied);
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<wire::ServiceReply>(answer->message).qpn, Qpn(99));
    world.settle();
    EXPECT_EQ(world.left(kClient) + world.left(kServer), 0U);
    EXPECT_EQ(world.client().size() + world.server().size(), 0U);
  }
}

TEST(Machine, IgnoresWhoSpeaksForAnother) {
  World world(1, {});
  Pair pair;
  connect(world, pair);
  const auto forged =
      wire::encode_connection_message(wire::DisconnectRequest{.local_id = pair.client, .remote_id = pair.server}, 1);
  EXPECT_EQ(world.server().on_message({address(2), address(66), 0}, forged, world.now()), Reception::kFitsNothing);
  EXPECT_EQ(world.server().state_of(pair.server), State::kEstablished);
  const auto of_another = wire::encode_connection_message(
      wire::DisconnectRequest{.local_id = pair.client + 1, .remote_id = pair.server}, 1);
  EXPECT_EQ(world.server().on_message({address(2), address(1), 0}, of_another, world.now()), Reception::kFitsNothing);
  EXPECT_EQ(world.server().state_of(pair.server), State::kEstablished);
}

TEST(Machine, RefusesCallsThatDoNotFitItsState) {
  World world(1, {});
  EXPECT_FALSE(world.client().establish(1, world.now()));
  const ConnectionId id = world.client().connect(world.path(), {}, world.now());
  EXPECT_FALSE(world.client().establish(id, world.now()));
  EXPECT_FALSE(world.client().reply(id, {}, world.now()));
  EXPECT_FALSE(world.client().answer(id, {}, world.now()));
  EXPECT_FALSE(world.client().disconnect(id, world.now()));
  EXPECT_FALSE(world.client().established(id, world.now()));
  EXPECT_FALSE(world.client().ask_for_time(id));
  EXPECT_EQ(world.client().state_of(id), State::kRequestSent);
}

}  // namespace
}  // namespace verbena::cm
