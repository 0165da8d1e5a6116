#include <algorithm>
#include <array>

#include <fake_verbs/ah_world.h>

#include "verbena/peer.h"

namespace verbena::fake {
namespace {

using Reply = AhWorld;
using Bytes = std::array<std::byte, 40>;

constexpr std::uint32_t kByteLen = 140;

// An IPv4 datagram of 100 bytes from 10.0.0.2 in front of which old bytes stand; the checksum is zeroed, as some NICs
// do.
Bytes from_peer(std::uint32_t to_last, std::uint8_t traffic_class = 0x68, std::uint8_t hop_limit = 3) {
  Bytes bytes;
  bytes.fill(std::byte{0xee});
  const std::array<std::uint8_t, 20> header{0x45,      traffic_class,
                                            0,         152,
                                            0,         0,
                                            0x40,      0,
                                            hop_limit, 17,
                                            0,         0,
                                            10,        0,
                                            0,         2,
                                            10,        0,
                                            0,         static_cast<std::uint8_t>(to_last)};
  std::transform(header.begin(), header.end(), bytes.begin() + 20, [](std::uint8_t byte) { return std::byte{byte}; });
  return bytes;
}

ibv_wc received() {
  ibv_wc completion{};
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV;
  completion.wc_flags = IBV_WC_GRH;
  completion.byte_len = kByteLen;
  completion.sl = 5;  // what irdma leaves there may be anything
  return completion;
}

TEST_F(Reply, GoesToTheSenderFromTheAddressItSentTo) {
  AhDirectory directory = make_directory();
  const Result<Destination> reply = directory.reply_to(received(), from_peer(1));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->gid, ipv4(2));
  EXPECT_EQ(reply->source, ipv4(1));
  EXPECT_EQ(reply->traffic_class, 0x68);
  EXPECT_EQ(reply->hop_limit, 64);  // not the three that remained
  EXPECT_EQ(reply->service_level, 0);
  EXPECT_EQ(reply->port, 1);
  EXPECT_TRUE(directory.acquire(*reply, soon()));
}

TEST_F(Reply, TellsAPeerThatWasIntroducedWithItsPortOrWithoutIt) {
  AhDirectory directory = make_directory();
  const Destination reply = *directory.reply_to(received(), from_peer(1));
  for (const std::uint8_t port : std::array<std::uint8_t, 2>{0, 1}) {
    PeerTable peers;
    AhPeer peer{.destination = to(2), .qpn = 0x11, .incarnation = 1};
    peer.destination.port = port;
    const PeerId id = *peers.introduce(peer, PeerTable::Instant{});
    EXPECT_EQ(peers.find(reply, 0x11), id) << "port " << int{port};
  }
}

TEST_F(Reply, ManyRepliesAreOneCreation) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  for (std::uint8_t hops = 1; hops < 100; ++hops) {
    const Destination reply = *directory.reply_to(received(), from_peer(1, 0, hops));
    if (sender.next(reply) == nullptr) {
      ASSERT_TRUE(directory.acquire(reply, soon()));
    } else {
      sender.completed(1);
    }
  }
  EXPECT_EQ(creations(), 1U);
}

TEST_F(Reply, ASenderAnswersWithoutAskingTheDevice) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  EXPECT_EQ(sender.next_reply(received(), from_peer(1)), nullptr);
  ASSERT_TRUE(directory.acquire(*directory.reply_to(received(), from_peer(1)), soon()));
  const std::uint64_t reads = table_reads();
  for (std::uint8_t hops = 1; hops < 100; ++hops) {
    ASSERT_NE(sender.next_reply(received(), from_peer(1, 0x68, hops)), nullptr);
    sender.completed(1);
  }
  EXPECT_EQ(table_reads(), reads);
  EXPECT_EQ(creations(), 1U);
  Bytes nonsense;
  nonsense.fill(std::byte{0});
  EXPECT_EQ(sender.next_reply(received(), nonsense), nullptr);
  EXPECT_EQ(AhSender().next_reply(received(), from_peer(1)), nullptr);
}

TEST_F(Reply, ASenderFollowsWhenTheAddressesOfThePortChange) {
  AhDirectoryOptions fed = options();
  fed.watch_async_events = false;
  AhDirectory directory = make_directory(fed);
  AhSender sender = std::move(*directory.make_sender());
  ASSERT_TRUE(directory.acquire(*directory.reply_to(received(), from_peer(1)), soon()));
  ASSERT_NE(sender.next_reply(received(), from_peer(1)), nullptr);
  EXPECT_EQ(sender.next_reply(received(), from_peer(9)), nullptr);  // not from an address of this port
  std::vector<GidPlace> gids = usual_gids();
  gids.push_back({ipv4(9), IBV_GID_TYPE_ROCE_V2, kNetdev});
  set_gids("fake0", 1, gids);
  directory.on_network_change({.kind = NetworkChange::Kind::kAddress, .netdev = kNetdev, .address = ipv4(9)});
  const Destination reply = *directory.reply_to(received(), from_peer(9));
  EXPECT_EQ(reply.source, ipv4(9));
  ASSERT_TRUE(directory.acquire(reply, soon()));
  EXPECT_TRUE(eventually([&] { return sender.next_reply(received(), from_peer(9)) != nullptr; }));
  sender.drained();
}

TEST_F(Reply, CongestionMarksAreNotEchoed) {
  AhDirectory directory = make_directory();
  EXPECT_EQ(directory.reply_to(received(), from_peer(1, 0x68 | 3))->traffic_class, 0x68 | 2);
  EXPECT_EQ(directory.reply_to(received(), from_peer(1, 0x68 | 1))->traffic_class, 0x68 | 2);
  EXPECT_EQ(directory.reply_to(received(), from_peer(1, 0x68))->traffic_class, 0x68);
}

TEST_F(Reply, ToAMulticastDatagramTheSourceIsChosen) {
  AhDirectory directory = make_directory();
  Bytes bytes = from_peer(1);
  bytes[36] = std::byte{224};
  const Result<Destination> reply = directory.reply_to(received(), bytes);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->source.is_zero());
}

TEST_F(Reply, WithoutAGrhThereIsNoSender) {
  AhDirectory directory = make_directory();
  ibv_wc completion = received();
  completion.wc_flags = 0;
  const Result<Destination> reply = directory.reply_to(completion, from_peer(1));
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, ::testing::HasSubstr("IBV_WC_GRH"));
}

TEST_F(Reply, AFailedCompletionTellsNoSender) {
  AhDirectory directory = make_directory();
  ibv_wc completion = received();
  completion.status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_FALSE(directory.reply_to(completion, from_peer(1)));
}

TEST_F(Reply, GarbageIsRefused) {
  AhDirectory directory = make_directory();
  EXPECT_FALSE(directory.reply_to(received(), Bytes{}));
}

TEST_F(Reply, OnInfiniBandItIsByLid) {
  Port port;
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.lid = 9;
  set_port("fake0", 1, port);
  AhDirectory directory = make_directory();
  ibv_wc completion = received();
  completion.wc_flags = 0;
  completion.slid = 77;
  completion.dlid_path_bits = 1;
  const Result<Destination> reply = directory.reply_to(completion, Bytes{});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->lid, 77);
  EXPECT_EQ(reply->service_level, 5);
  EXPECT_EQ(reply->source_path_bits, 1);
  EXPECT_TRUE(directory.acquire(*reply, soon()));
}

TEST_F(Reply, OptionsGiveTheHopLimit) {
  AhDirectoryOptions far = options();
  far.reply_hop_limit = 255;
  AhDirectory directory = make_directory(far);
  EXPECT_EQ(directory.reply_to(received(), from_peer(1))->hop_limit, 255);
}

}  // namespace
}  // namespace verbena::fake
