#include "transport/udp/udp_port.h"

#include <cstdlib>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/byte_order.h"
#include "base/qpn.h"
#include "transport/fd.h"
#include "transport/testing.h"
#include "transport/udp/socket_address.h"

namespace verbena::transport {
namespace {

using testing::Batch;
using testing::Bytes;
using testing::bytes_of;
using testing::Drops;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Recorder;

constexpr std::size_t kAll = 10000;

Gid gid(const char* text) {
  return *parse_gid(text);
}

std::unique_ptr<UdpPort> open_port(DropCounter& drops, const char* address, const char* interface = "lo") {
  UdpOptions options;
  options.address = gid(address);
  options.interface_index = ::if_nametoindex(interface);
  auto port = UdpPort::open(options, drops);
  EXPECT_TRUE(port) << port.error().message;
  return port ? std::move(*port) : nullptr;
}

Envelope between(const UdpPort& from, const char* to, std::uint16_t source_port = kRocePort) {
  return {.source = from.address(),
          .destination = gid(to),
          .source_port = source_port,
          .traffic_class = 0x6a,
          .hop_limit = 17};
}

// The loopback interface delivers before the sending call returns, so there is nothing to wait for.
bool is_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(UdpPort, CarriesEveryFieldOfTheEnvelopeOverIpv4) {
  Drops drops;
  Recorder recorder;
  const auto a = open_port(drops, "127.0.0.1");
  const auto b = open_port(drops, "127.0.0.2");
  const auto source_port = a->reserve_source_port(0xC123);
  const auto envelope = between(*a, "127.0.0.2", source_port);
  Batch batch;
  batch.add(envelope, bytes_of("hello"));
  batch.add(envelope, bytes_of("again"));
  EXPECT_FALSE(is_readable(b->fd()));
  EXPECT_EQ(a->send(batch.get(), {}).taken, 2U);
  EXPECT_TRUE(is_readable(b->fd()));
  EXPECT_EQ(b->receive(recorder, kAll), 2U);
  EXPECT_THAT(recorder.texts(), ElementsAre("hello", "again"));
  EXPECT_EQ(recorder.all[0].envelope, envelope);
  EXPECT_TRUE(recorder.all[0].has_icrc);
  EXPECT_FALSE(is_readable(b->fd()));
  EXPECT_EQ(drops.total(), 0U);
}

TEST(UdpPort, CarriesEveryFieldOfTheEnvelopeOverIpv6) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "::1");
  const auto envelope = between(*port, "::1", port->reserve_source_port(0xFFFF));
  Batch batch;
  batch.add(envelope, bytes_of("six"));
  EXPECT_EQ(port->send(batch.get(), {}).taken, 1U);
  EXPECT_EQ(port->receive(recorder, kAll), 1U);
  EXPECT_THAT(recorder.texts(), ElementsAre("six"));
  EXPECT_EQ(recorder.all[0].envelope, envelope);
}

TEST(UdpPort, LeavesTheIpv4HeaderAsTheIcrcNeedsIt) {
  const Fd raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!raw) return;  // without CAP_NET_RAW nobody can see this
  const SocketAddress here(gid("127.0.0.2"), 0, 0);
  ASSERT_EQ(::bind(raw.get(), here.get(), here.length()), 0);
  Drops drops;
  const auto a = open_port(drops, "127.0.0.1");
  const auto b = open_port(drops, "127.0.0.2");
  for (const std::uint16_t source_port : {kRocePort, a->reserve_source_port(0xD000)}) {
    Batch batch;
    batch.add(between(*a, "127.0.0.2", source_port), bytes_of("look at me"));
    ASSERT_EQ(a->send(batch.get(), {}).taken, 1U);
    std::array<std::byte, 200> packet{};
    ASSERT_EQ(::recv(raw.get(), packet.data(), packet.size(), 0), 20 + 8 + 10);
    EXPECT_EQ(std::to_integer<int>(packet[1]), 0x6a);
    EXPECT_EQ(load_be16(packet.data() + 4), 0) << "ID";
    EXPECT_EQ(load_be16(packet.data() + 6), IP_DF);
    EXPECT_EQ(std::to_integer<int>(packet[8]), 17);
    EXPECT_EQ(load_be16(packet.data() + 20), source_port);
    EXPECT_EQ(load_be16(packet.data() + 22), kRocePort);
    EXPECT_EQ(load_be16(packet.data() + 26), 0) << "checksum";
  }
}

TEST(UdpPort, SaysInPlainWordsThatThePortBelongsToAnother) {
  Drops drops;
  const Fd stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress here(gid("127.0.0.9"), kRocePort, 0);
  ASSERT_EQ(::bind(stranger.get(), here.get(), here.length()), 0);
  const auto port = UdpPort::open({.address = gid("127.0.0.9")}, drops);
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, ErrorCode::kBusy);
  EXPECT_EQ(port.error().system_errno, EADDRINUSE);
  EXPECT_THAT(port.error().message, HasSubstr("127.0.0.9"));
  EXPECT_THAT(port.error().message, HasSubstr("rdma link delete"));
  EXPECT_THAT(port.error().message, HasSubstr("ss -lunp"));
}

TEST(UdpPort, NeedsAnAddressOfThisHost) {
  Drops drops;
  EXPECT_EQ(UdpPort::open({.address = gid("192.0.2.1")}, drops).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(UdpPort::open({.address = gid("2001:db8::1")}, drops).error().code, ErrorCode::kNotFound);
}

TEST(UdpPort, CountsAndExplainsWhatTheKernelRefuses) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.1");
  Batch batch;
  batch.add(between(*port, "127.0.0.1"), Bytes(70000));
  batch.add(between(*port, "127.0.0.1"), Bytes(70000));
  batch.add(between(*port, "::1"), bytes_of("another family"));
  batch.add(between(*port, "127.0.0.1"), bytes_of("good"));
  const auto result = port->send(batch.get(), {});
  EXPECT_EQ(result.taken, 4U);
  EXPECT_FALSE(result.full);
  EXPECT_EQ(drops.of(Drop::kDatagramTooLong), 2U);
  EXPECT_EQ(drops.of(Drop::kNoRoute), 1U);
  EXPECT_EQ(drops.sentences().size(), 2U);
  EXPECT_EQ(port->receive(recorder, kAll), 1U);
}

TEST(UdpPort, CountsADestinationThatCannotBeReached) {
  Drops drops;
  const auto port = open_port(drops, "127.0.0.1");
  Batch batch;
  batch.add(between(*port, "203.0.113.1"), bytes_of("x"));
  EXPECT_EQ(port->send(batch.get(), {}).taken, 1U);
  EXPECT_EQ(drops.of(Drop::kNoRoute) + drops.of(Drop::kSocketError), 1U);
}

TEST(UdpPort, ReservesThePortThatDatagramsReallyHave) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.3");
  EXPECT_EQ(port->reserve_source_port(0xC000), 0xC000);
  EXPECT_EQ(port->reserve_source_port(0xC000), 0xC000);
  EXPECT_EQ(port->reserve_source_port(0xFFFF), 0xFFFF);
  EXPECT_EQ(port->reserve_source_port(0x0000), 0xC000);
  EXPECT_EQ(port->reserve_source_port(kRocePort), kRocePort);

  const Fd stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress taken(gid("127.0.0.3"), 0xC100, 0);
  ASSERT_EQ(::bind(stranger.get(), taken.get(), taken.length()), 0);
  EXPECT_EQ(port->reserve_source_port(0xC100), 0xC101);

  Batch batch;
  for (const int source_port : {0xC000, 0xC101, 0xC101, 0xFFFF, 0xEEEE}) {
    batch.add(between(*port, "127.0.0.3", static_cast<std::uint16_t>(source_port)), bytes_of("x"));
  }
  EXPECT_EQ(port->send(batch.get(), {}).taken, 5U);
  EXPECT_EQ(port->receive(recorder, kAll), 5U);
  std::vector<int> ports;
  for (const auto& one : recorder.all) ports.push_back(one.envelope.source_port);
  EXPECT_THAT(ports, ElementsAre(0xC000, 0xC101, 0xC101, 0xFFFF, kRocePort)) << "0xEEEE was never reserved";
}

TEST(UdpPort, ReservesNoMoreThanItsLimitAndThenSharesThem) {
  Drops drops;
  UdpOptions options;
  options.address = gid("127.0.0.4");
  options.max_source_ports = 3;
  const auto port = UdpPort::open(options, drops);
  ASSERT_TRUE(port);
  std::set<std::uint16_t> ports;
  for (unsigned wanted = 0xC000; wanted < 0xC100; ++wanted) {
    ports.insert((*port)->reserve_source_port(static_cast<std::uint16_t>(wanted)));
  }
  EXPECT_EQ(ports, (std::set<std::uint16_t>{0xC000, 0xC001, 0xC002}));
  options.max_source_ports = 0;
  EXPECT_EQ((*UdpPort::open(options, drops))->reserve_source_port(0xC000), kRocePort);
}

TEST(UdpPort, HidesWhatArrivesAtASourcePort) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.5");
  const auto source_port = port->reserve_source_port(0xC000);
  const Fd stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress there(port->address(), source_port, 0);
  EXPECT_EQ(::sendto(stranger.get(), "x", 1, 0, there.get(), there.length()), 1);
  EXPECT_FALSE(is_readable(port->fd()));
  EXPECT_EQ(port->receive(recorder, kAll), 0U);
}

TEST(UdpPort, SendsBatchesLongerThanASystemCallTakes) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.6");
  port->reserve_source_port(0xC000);
  Batch batch;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    const std::uint16_t source_port = i % 40 < 30 ? 0xC000 : kRocePort;
    batch.add(between(*port, "127.0.0.6", source_port), bytes_of(expected.back()));
  }
  EXPECT_EQ(port->send(batch.get(), {}).taken, 100U);
  EXPECT_EQ(port->receive(recorder, 33), 33U);
  EXPECT_EQ(port->receive(recorder, kAll), 67U);
  EXPECT_EQ(recorder.texts(), expected);
}

TEST(UdpPort, GathersManyParts) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.6");
  const auto envelope = between(*port, "127.0.0.6");
  const auto bytes = bytes_of("abcdefghijklmnopqrstuvwxyz");
  std::vector<ConstBytes> parts;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    parts.push_back(std::span(bytes).subspan(i, 1));
    parts.emplace_back();
  }
  const std::vector<Outgoing> batch(
      20, {.envelope = &envelope, .parts = parts, .size = 26, .slot = Slot{}, .has_icrc = true, .network_header = {}});
  EXPECT_EQ(port->send(batch, {}).taken, 20U);
  EXPECT_EQ(port->receive(recorder, kAll), 20U);
  for (const auto& text : recorder.texts()) EXPECT_EQ(text, "abcdefghijklmnopqrstuvwxyz");

  const std::vector<ConstBytes> too_many(300, std::span(bytes).first(1));
  const Outgoing impossible{
      .envelope = &envelope, .parts = too_many, .size = 300, .slot = Slot{}, .has_icrc = true, .network_header = {}};
  EXPECT_EQ(port->send({&impossible, 1}, {}).taken, 1U);
  EXPECT_EQ(drops.of(Drop::kDatagramTooLong), 1U);
}

TEST(UdpPort, CountsAnArrivalLongerThanAnyPacket) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.6");
  Batch batch;
  batch.add(between(*port, "127.0.0.6"), Bytes(4608));
  batch.add(between(*port, "127.0.0.6"), Bytes(4609));
  EXPECT_EQ(port->send(batch.get(), {}).taken, 2U);
  EXPECT_EQ(port->receive(recorder, kAll), 2U);
  EXPECT_EQ(recorder.all.size(), 1U);
  EXPECT_EQ(drops.of(Drop::kPayloadTooLong), 1U);
}

TEST(UdpPort, CountsWhatTheKernelHadNoRoomFor) {
  Drops drops;
  Recorder recorder;
  UdpOptions options;
  options.address = gid("127.0.0.7");
  options.buffer_bytes = 8192;
  const auto port = *UdpPort::open(options, drops);
  const std::size_t sent = 200;
  for (std::size_t i = 0; i < sent; ++i) {
    Batch batch;
    batch.add(between(*port, "127.0.0.7"), Bytes(500));
    ASSERT_EQ(port->send(batch.get(), {}).taken, 1U);
  }
  port->receive(recorder, kAll);
  Batch last;
  last.add(between(*port, "127.0.0.7"), bytes_of("brings the news of the loss"));
  port->send(last.get(), {});
  port->receive(recorder, kAll);
  EXPECT_GT(drops.of(Drop::kSocketOverflow), 0U);
  EXPECT_EQ(recorder.all.size() + drops.of(Drop::kSocketOverflow), sent + 1);
}

// A datagram whose first bytes are a BTH to a queue pair of that slot.
Bytes to_slot(unsigned slot, std::uint16_t index) {
  Bytes bytes(12);
  store_be32(bytes.data() + 4, Qpn(Slot(static_cast<std::uint8_t>(slot)), index).value());
  return bytes;
}

TEST(UdpPort, SharesAnAddressAndKeepsWhatIsForOneSlotTogether) {
  Drops drops;
  const auto first = open_port(drops, "127.0.0.8");
  const auto second = open_port(drops, "127.0.0.8");
  const auto sender = open_port(drops, "127.0.0.1");
  Batch batch;
  for (unsigned i = 0; i < 64; ++i) {
    const auto source_port = sender->reserve_source_port(static_cast<std::uint16_t>(0xC000 + i));
    batch.add(between(*sender, "127.0.0.8", source_port), to_slot(1 + i % 2, static_cast<std::uint16_t>(i)));
  }
  EXPECT_EQ(sender->send(batch.get(), {}).taken, 64U);
  for (const auto& port : {first.get(), second.get()}) {
    Recorder recorder;
    EXPECT_EQ(port->receive(recorder, kAll), 32U);
    for (const auto& one : recorder.all) EXPECT_EQ(one.bytes[5], recorder.all[0].bytes[5]);
  }
}

struct MulticastCase {
  const char* interface;
  const char* address;
  const char* group;
  const char* other_group;
};

std::vector<MulticastCase> multicast_cases() {
  std::vector<MulticastCase> cases{{"lo", "127.0.0.1", "239.1.2.3", "239.1.2.4"}};
  if (!testing::in_own_network()) return cases;
  static const int made = std::system(
      "ip link add vb0 type veth peer name vb1 && ip link set vb1 up && ip link set vb0 up && "
      "ip addr add 10.77.0.1/24 dev vb0 && ip addr add fd77::1/64 dev vb0 nodad");
  EXPECT_EQ(made, 0);
  cases.push_back({"vb0", "10.77.0.1", "239.1.2.3", "239.1.2.4"});
  cases.push_back({"vb0", "fd77::1", "ff02::1:1234", "ff02::1:1235"});
  cases.push_back({"vb0", "fd77::1", "ff0e::ffff:ef01:203", "ff0e::99"});
  return cases;
}

TEST(UdpPort, GivesEveryProcessThatJoinedACopyTheSenderToo) {
  Drops drops;
  for (const auto& [interface, address, group, other_group] : multicast_cases()) {
    SCOPED_TRACE(group);
    std::vector<std::unique_ptr<UdpPort>> ports;
    ports.reserve(3);
    for (int i = 0; i < 3; ++i) ports.push_back(open_port(drops, address, interface));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(ports[static_cast<std::size_t>(i)]->join(gid(group)));
    const auto envelope = between(*ports[0], group, ports[0]->reserve_source_port(0xC777));
    Batch batch;
    batch.add(envelope, bytes_of("to all"));
    batch.add(between(*ports[0], other_group), bytes_of("to others"));
    EXPECT_EQ(ports[0]->send(batch.get(), {}).taken, 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      Recorder recorder;
      EXPECT_TRUE(is_readable(ports[i]->fd()));
      EXPECT_EQ(ports[i]->receive(recorder, kAll), 1U);
      ASSERT_THAT(recorder.texts(), ElementsAre("to all"));
      EXPECT_EQ(recorder.all[0].envelope, envelope);
    }
    Recorder outsider;
    EXPECT_EQ(ports[2]->receive(outsider, kAll), 0U);
  }
  EXPECT_EQ(drops.total(), 0U);
}

TEST(UdpPort, StaysInAGroupUntilItHasLeftAsOftenAsJoined) {
  Drops drops;
  const auto port = open_port(drops, "127.0.0.1");
  const auto group = gid("239.9.9.9");
  Batch batch;
  batch.add(between(*port, "239.9.9.9"), bytes_of("x"));
  auto arrives = [&] {
    Recorder recorder;
    port->send(batch.get(), {});
    return port->receive(recorder, kAll) == 1;
  };
  EXPECT_FALSE(arrives());
  ASSERT_TRUE(port->join(group));
  ASSERT_TRUE(port->join(group));
  EXPECT_TRUE(arrives());
  EXPECT_TRUE(port->leave(group));
  EXPECT_TRUE(arrives());
  EXPECT_TRUE(port->leave(group));
  EXPECT_FALSE(arrives());
  EXPECT_EQ(port->leave(group).error().code, ErrorCode::kNotFound);
}

TEST(UdpPort, RefusesAGroupThatIsNone) {
  Drops drops;
  const auto port = open_port(drops, "127.0.0.1");
  for (const auto* bad : {"127.0.0.1", "ff02::1", "::1"}) {
    EXPECT_EQ(port->join(gid(bad)).error().code, ErrorCode::kInvalidArgument) << bad;
  }
}

TEST(UdpPort, SendsFromManyThreads) {
  Drops drops;
  Recorder recorder;
  const auto port = open_port(drops, "127.0.0.6");
  auto send = [&](std::uint16_t wanted) {
    for (int i = 0; i < 200; ++i) {
      Batch batch;
      batch.add(between(*port, "127.0.0.6", port->reserve_source_port(static_cast<std::uint16_t>(wanted + i % 3))),
                bytes_of("x"));
      EXPECT_EQ(port->send(batch.get(), {}).taken, 1U);
    }
  };
  std::thread first(send, std::uint16_t{0xC000});
  std::thread second(send, std::uint16_t{0xC001});
  first.join();
  second.join();
  EXPECT_EQ(port->receive(recorder, kAll), 400U);
}

TEST(UdpPort, AbandonedInAChildLetsTheParentGoOn) {
  Drops drops;
  Recorder recorder;
  auto port = open_port(drops, "127.0.0.6");
  const auto before = testing::open_descriptors();
  testing::Child child([&] {
    const auto held = testing::open_descriptors();
    port->abandon();
    port.reset();
    return testing::open_descriptors() + 2 == held ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(testing::open_descriptors(), before);
  Batch batch;
  batch.add(between(*port, "127.0.0.6"), bytes_of("x"));
  port->send(batch.get(), {});
  EXPECT_TRUE(is_readable(port->fd()));
  EXPECT_EQ(port->receive(recorder, kAll), 1U);
}

}  // namespace
}  // namespace verbena::transport
