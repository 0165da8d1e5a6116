#include <array>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"

namespace verbena::engine {
namespace {

using testing::ConnectionBench;
using testing::SentPacket;
using wire::Opcode;

constexpr std::uint32_t kMtu = ConnectionBench::kMtu;
constexpr std::uint8_t kMarked = kEcnExperienced;

Envelope marked(ConnectionBench& bench) {
  Envelope envelope = bench.envelope();
  envelope.traffic_class = kMarked;
  return envelope;
}

wire::Packet cnp(const ConnectionBench& bench) {
  wire::Packet packet = bench.incoming(Opcode::kCnp, 0);
  packet.bth.becn = true;
  return packet;
}

Drop hear_cnp(ConnectionBench& bench) {
  const Drop drop = bench.qp().on_cnp(cnp(bench), bench.envelope(), bench.now);
  if (drop == Drop::kNone) bench.qp().slow_answers(bench.now);
  return drop;
}

// A write of one packet, at the next PSN.
struct Peer {
  explicit Peer(ConnectionBench& to) : bench(to) {}
  void write(const Envelope& envelope) {
    wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, psn & Psn::kMask, 4);
    ++psn;
    packet.payload = payload;
    ASSERT_EQ(bench.receive_from(packet, envelope), Drop::kNone);
  }
  ConnectionBench& bench;
  std::vector<std::byte> payload = testing::pattern(4);
  std::uint32_t psn = ConnectionBench::kReceivePsn;
};

int count_of(Opcode opcode, const std::vector<SentPacket>& packets) {
  int count = 0;
  for (const SentPacket& packet : packets) count += packet.opcode() == opcode ? 1 : 0;
  return count;
}

TEST(Congestion, PacketsOfAConnectionAreEcnCapable) {
  for (const std::uint8_t given : std::initializer_list<std::uint8_t>{0x00, 0x01, 0x02, 0x03, 0xb8, 0xbb}) {
    ConnectionBench bench;
    bench.attributes.address.traffic_class = given;
    bench.bring_up();
    bench.post(SendOpcode::kRdmaWrite);
    Transmit packet;
    ASSERT_TRUE(bench.qp().poll_transmit(bench.now, packet));
    EXPECT_EQ(packet.envelope->traffic_class, (given & 0xfc) | 0x02) << int{given};
    EXPECT_EQ(bench.qp().query().address.traffic_class, given) << "what was given is told";
  }
}

// An InfiniBand port's end of a connection with a GRH.
struct InfinibandEnd {
  InfinibandEnd() {
    bench.host().put_on_infiniband(8, 0);
    bench.attributes.address.destination_lid = 3;
    bench.attributes.address.traffic_class = 0xbb;
    bench.bring_up();
    incoming.link = {.source_lid = 3, .destination_lid = 8, .has_grh = true};
  }
  ConnectionBench bench;
  Envelope incoming = marked(bench);
};

TEST(Congestion, OnInfinibandTheTrafficClassIsTheApplications) {
  InfinibandEnd end;
  end.bench.post(SendOpcode::kRdmaWrite);
  Transmit packet;
  ASSERT_TRUE(end.bench.qp().poll_transmit(end.bench.now, packet));
  EXPECT_EQ(packet.envelope->traffic_class, 0xbb);
}

TEST(Congestion, OnInfinibandNothingIsAMarkAndNoCnpIsHeeded) {
  InfinibandEnd end;
  ConnectionBench& bench = end.bench;
  Peer(bench).write(end.incoming);
  EXPECT_EQ(count_of(Opcode::kCnp, bench.responses()), 0);
  EXPECT_EQ(bench.events().count(TransportEvent::kEcnMarked), 0);
  EXPECT_EQ(bench.qp().on_cnp(cnp(bench), end.incoming, bench.now), Drop::kNone);
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpHandled), 0);
}

TEST(Congestion, ACnpHasThePkeyOfItsConnection) {
  ConnectionBench bench;
  const std::array<std::uint16_t, 2> pkeys{0xffff, 0x8001};
  bench.host().set_pkeys(pkeys);
  bench.attributes.pkey_index = 1;
  bench.bring_up();
  wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, ConnectionBench::kReceivePsn, 0);
  packet.bth.pkey = Pkey(0x8001);
  ASSERT_EQ(bench.receive_from(packet, marked(bench)), Drop::kNone);
  const auto answers = bench.responses();
  ASSERT_EQ(count_of(Opcode::kCnp, answers), 1);
  EXPECT_EQ(answers[0].packet.bth.pkey, Pkey(0x8001));
}

TEST(Congestion, AMarkedRequestIsAnsweredWithACnp) {
  ConnectionBench bench;
  bench.bring_up();
  Peer peer(bench);
  peer.write(marked(bench));
  EXPECT_TRUE(bench.qp().has_responses());
  Transmit packet;
  ASSERT_TRUE(bench.qp().poll_response(bench.now, packet));
  EXPECT_EQ(packet.envelope->traffic_class, 0xc2);
  EXPECT_EQ(packet.envelope->destination, bench.envelope().source);
  const auto bytes = testing::flatten(packet);
  // BTH: opcode, no flags, P_Key, BECN, QPN, no PSN; then 16 bytes of zero.
  const std::vector<std::uint8_t> bth{0x81, 0x00, 0xff, 0xff, 0x40, 0x03, 0x00, 0x02, 0, 0, 0, 0};
  ASSERT_EQ(bytes.size(), bth.size() + 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(bytes[i]), i < bth.size() ? int{bth[i]} : 0) << i;
  }
  bench.qp().on_responded(1);
  EXPECT_EQ(count_of(Opcode::kRcAcknowledge, bench.responses()), 1);
  EXPECT_FALSE(bench.qp().has_responses());
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpSent), 1);
  EXPECT_EQ(bench.events().count(TransportEvent::kEcnMarked), 1);
}

TEST(Congestion, AMarkedAnswerIsAnsweredWithACnp) {
  ConnectionBench bench;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite);
  bench.requests();
  wire::Packet packet = bench.incoming(Opcode::kRcAcknowledge, ConnectionBench::kSendPsn);
  packet.aeth = {wire::Syndrome::ack(0x1f), 0};
  ASSERT_EQ(bench.qp().on_response(packet, marked(bench), bench.now), Drop::kNone);
  EXPECT_EQ(count_of(Opcode::kCnp, bench.responses()), 1);
}

TEST(Congestion, ThereIsOneCnpInAnInterval) {
  ConnectionBench bench;
  bench.bring_up();
  Peer peer(bench);
  int cnps = 0;
  constexpr int kPackets = 1'000;
  constexpr Duration kApart{1'000};
  for (int i = 0; i < kPackets; ++i) {
    peer.write(marked(bench));
    cnps += count_of(Opcode::kCnp, bench.responses());
    bench.now = bench.now + kApart;
  }
  EXPECT_EQ(cnps, kPackets * kApart / NotificationPoint::kInterval);
  EXPECT_EQ(bench.events().count(TransportEvent::kEcnMarked), kPackets);
}

TEST(Congestion, OtherEcnBitsAreNoMark) {
  ConnectionBench bench;
  bench.bring_up();
  Peer peer(bench);
  for (const std::uint8_t bits : std::initializer_list<std::uint8_t>{0x00, 0x01, 0x02, 0xfc, 0xfe}) {
    Envelope envelope = bench.envelope();
    envelope.traffic_class = bits;
    peer.write(envelope);
  }
  EXPECT_EQ(count_of(Opcode::kCnp, bench.responses()), 0);
  EXPECT_EQ(bench.events().count(TransportEvent::kEcnMarked), 0);
}

TEST(Congestion, AStrangersMarkIsNotHeeded) {
  ConnectionBench bench;
  bench.bring_up();
  Envelope envelope = marked(bench);
  envelope.source.bytes[15] ^= 0x40;
  wire::Packet packet = bench.incoming_write(Opcode::kRcWriteOnly, ConnectionBench::kReceivePsn, 0);
  EXPECT_EQ(bench.receive_from(packet, envelope), Drop::kNotThePeer);
  EXPECT_FALSE(bench.qp().has_responses());
  EXPECT_EQ(bench.qp().on_cnp(cnp(bench), envelope, bench.now), Drop::kNotThePeer);
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpHandled), 0);
}

TEST(Congestion, ACnpThatTheTransportDidNotTakeIsYieldedAgain) {
  ConnectionBench bench;
  bench.bring_up();
  Peer peer(bench);
  peer.write(marked(bench));
  Transmit packet;
  Transmit second;
  ASSERT_TRUE(bench.qp().poll_response(bench.now, packet));
  ASSERT_TRUE(bench.qp().poll_response(bench.now, second));
  EXPECT_FALSE(bench.qp().poll_response(bench.now, second));
  bench.qp().on_responded(0);
  bench.qp().rewind_responses();
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpSent), 0);
  const auto answers = bench.responses();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].opcode(), Opcode::kCnp);
  EXPECT_EQ(answers[1].opcode(), Opcode::kRcAcknowledge);
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpSent), 1);
}

// So many, each when another may be said.
void hear_cnps(ConnectionBench& bench, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(hear_cnp(bench), Drop::kNone);
    bench.now = bench.now + NotificationPoint::kInterval;
  }
}

// How many packets leave in `time`, by a caller that comes every microsecond.
int packets_in(ConnectionBench& bench, Duration time) {
  int count = 0;
  const Instant end = bench.now + time;
  for (; bench.now < end; bench.now = bench.now + Duration(1'000)) {
    count += static_cast<int>(bench.requests().size());
  }
  return count;
}

TEST(Congestion, ACnpSlowsRequestsDown) {
  ConnectionBench bench(QpType::kRc, 100'000);
  bench.attributes.timeout = 24;
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 0x4000);  // 64 packets
  hear_cnps(bench, 7);
  // 10 Gbit/s / 128, and alpha has hardly decayed: a packet of 272 to 288 bytes every 28 us.
  EXPECT_NEAR(packets_in(bench, Duration(280'000)), 10, 2);
  EXPECT_TRUE(bench.qp().has_untransmitted());
  ASSERT_TRUE(bench.qp().next_departure());
  EXPECT_GT(*bench.qp().next_departure(), bench.now);
  EXPECT_LT(*bench.qp().next_departure() - bench.now, Duration(60'000));
  EXPECT_EQ(bench.events().count(TransportEvent::kCnpHandled), 7);
}

TEST(Congestion, ACnpSlowsTheBytesOfReadsDown) {
  ConnectionBench bench;
  bench.attributes.timeout = 20;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, ConnectionBench::kReceivePsn, 64 * kMtu));
  hear_cnps(bench, 7);
  const auto at_once = bench.responses().size();
  EXPECT_LT(at_once, 4U);
  EXPECT_TRUE(bench.qp().has_responses());
  ASSERT_TRUE(bench.qp().next_response());
  EXPECT_GT(*bench.qp().next_response(), bench.now);
  std::size_t all = at_once;
  for (int i = 0; i < 10'000 && bench.qp().has_responses(); ++i) {
    const auto due = bench.qp().next_response();
    ASSERT_TRUE(due);
    bench.now = std::max(bench.now, *due);
    const auto answers = bench.responses();
    EXPECT_LE(answers.size(), 2U);
    all += answers.size();
  }
  EXPECT_EQ(all, 64U);
}

// What the pace does not hold back waits for the transport, which is tried again at once.
TEST(Congestion, AnAcknowledgementAndACnpDoNotWaitForThePaceOfReads) {
  ConnectionBench bench;
  bench.attributes.timeout = 20;
  bench.bring_up();
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, ConnectionBench::kReceivePsn, 4 * kMtu));
  hear_cnps(bench, 7);
  while (bench.qp().has_responses()) {
    bench.now = std::max(bench.now, *bench.qp().next_response());
    bench.responses();
  }
  bench.receive(bench.incoming_write(Opcode::kRcWriteOnly, ConnectionBench::kReceivePsn + 4, 64));
  ASSERT_TRUE(bench.qp().has_responses());
  EXPECT_FALSE(bench.qp().next_response());
}

TEST(Congestion, BeingSlowDoesNotLookLikeBeingGone) {
  ConnectionBench bench;  // a timeout of about a millisecond
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 0x4000);
  hear_cnps(bench, 40);
  const Instant begin = bench.now;
  std::uint32_t psn = ConnectionBench::kSendPsn;
  while (bench.qp().has_untransmitted()) {
    const auto due = bench.qp().next_departure();
    ASSERT_TRUE(due);
    bench.now = std::max(bench.now, *due);
    const auto timer = bench.qp().next_timeout();
    ASSERT_TRUE(!timer || bench.now < *timer) << "not for want of a packet to answer";
    for (const SentPacket& packet : bench.requests()) {
      psn = packet.psn();
      if (packet.packet.bth.ack_request) bench.acknowledge(psn);
    }
  }
  EXPECT_LT(bench.now - begin, Duration(1'048'576)) << "half of the window, in half of the timeout";
  EXPECT_EQ(bench.events().count(TransportEvent::kTimeout), 0);
}

TEST(Congestion, AfterAResetThereIsNoneAnyMore) {
  ConnectionBench bench;
  bench.bring_up();
  Peer peer(bench);
  peer.write(marked(bench));
  for (int i = 0; i < 10; ++i) hear_cnp(bench), bench.now = bench.now + NotificationPoint::kInterval;
  ASSERT_TRUE(bench.go(QpState::kReset));
  EXPECT_FALSE(bench.qp().has_responses());
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 0x4000);
  EXPECT_EQ(bench.requests().size(), 64U);
}

TEST(Congestion, StatesAndTypesThatHearNoCnp) {
  ConnectionBench bench;
  EXPECT_EQ(hear_cnp(bench), Drop::kBadQpState);
  bench.bring_up(QpState::kReadyToReceive);
  EXPECT_EQ(hear_cnp(bench), Drop::kNone);
  ASSERT_TRUE(bench.go(QpState::kError));
  EXPECT_EQ(hear_cnp(bench), Drop::kBadQpState);
  testing::Host host(1);
  QueuePair datagrams(host.config(5));
  EXPECT_EQ(datagrams.on_cnp(cnp(bench), bench.envelope(), bench.now), Drop::kOpcodeNotForQp);
}

// A static rate holds back both directions, and is told beside congestion.
TEST(Congestion, TheStaticRateOfThePathIsKeptByBothDirections) {
  ConnectionBench bench;
  bench.attributes.address.static_rate = 2;  // 2.5 Gbit/s
  bench.bring_up();
  bench.post(SendOpcode::kRdmaWrite, 0x4000);
  const std::size_t burst = bench.requests().size();
  EXPECT_LT(burst, 30U) << "20 us of it at once";
  bench.receive(bench.incoming_write(Opcode::kRcReadRequest, ConnectionBench::kReceivePsn, 64 * kMtu));
  EXPECT_LT(bench.responses().size(), 30U);
  EXPECT_TRUE(bench.qp().has_responses());
}

TEST(Congestion, UcMindsItToo) {
  ConnectionBench bench(QpType::kUc);
  bench.bring_up();
  wire::Packet packet = bench.incoming_write(Opcode::kUcWriteOnly, ConnectionBench::kReceivePsn, 0);
  ASSERT_EQ(bench.receive_from(packet, marked(bench)), Drop::kNone);
  EXPECT_EQ(count_of(Opcode::kCnp, bench.responses()), 1);
  for (int i = 0; i < 7; ++i) hear_cnp(bench), bench.now = bench.now + NotificationPoint::kInterval;
  bench.post(SendOpcode::kRdmaWrite, 0x4000);
  EXPECT_LT(bench.requests().size(), 8U);
}

}  // namespace
}  // namespace verbena::engine
