// What a live kernel seldom sends: other families, other lengths, and bytes that end too early.
#include "rdma/network_notice.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

namespace verbena::rdma {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes neighbour(std::uint8_t family, std::uint16_t state, std::size_t address_bytes, std::size_t station_bytes) {
  ndmsg body{};
  body.ndm_family = family;
  body.ndm_ifindex = 5;
  body.ndm_state = state;
  NetlinkRequest message(RTM_NEWNEIGH);
  message.fixed(body).attribute(NDA_DST, Bytes(address_bytes, 10));
  if (station_bytes != 0) message.attribute(NDA_LLADDR, Bytes(station_bytes, 2));
  return message.bytes();
}

std::vector<NetworkChange> read(Octets datagram) {
  std::vector<NetworkChange> changes;
  read_notices(datagram, [&](const NetworkChange& change) { changes.push_back(change); });
  return changes;
}

TEST(NetworkNotice, AMacCountsOnlyWhileItIsValid) {
  EXPECT_TRUE(read(neighbour(AF_INET, NUD_STALE, 4, 6)).at(0).mac);
  EXPECT_TRUE(read(neighbour(AF_INET6, NUD_PERMANENT, 16, 6)).at(0).mac);
  EXPECT_FALSE(read(neighbour(AF_INET, NUD_FAILED, 4, 6)).at(0).mac);
  EXPECT_FALSE(read(neighbour(AF_INET, NUD_INCOMPLETE, 4, 6)).at(0).mac);
  EXPECT_FALSE(read(neighbour(AF_INET, NUD_REACHABLE, 4, 0)).at(0).mac);
}

TEST(NetworkNotice, WhatIsNoEthernetNeighbourIsLeftOut) {
  EXPECT_TRUE(read(neighbour(AF_BRIDGE, NUD_PERMANENT, 4, 6)).empty());
  EXPECT_TRUE(read(neighbour(AF_INET, NUD_REACHABLE, 4, 20)).empty()) << "IP over InfiniBand";
}

TEST(NetworkNotice, SeveralMessagesInOneDatagramAreAllRead) {
  Bytes both = neighbour(AF_INET, NUD_STALE, 4, 6);
  const Bytes second = neighbour(AF_INET6, NUD_STALE, 16, 6);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(read(both).size(), 2U);
}

TEST(NetworkNotice, EveryTruncationIsHarmless) {
  const Bytes whole = neighbour(AF_INET, NUD_STALE, 4, 6);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_TRUE(read(cut).empty()) << length;
    for (const int type : {RTM_NEWLINK, RTM_NEWADDR, RTM_NEWNEIGH, RTM_NEWROUTE, RTM_NEWRULE, RTM_NEWNEXTHOP}) {
      static_cast<void>(read_notice(static_cast<std::uint16_t>(type), cut));
    }
  }
}

TEST(NetworkNotice, AnyBytesAreHarmless) {
  constexpr std::uint32_t kSeed = 11;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 100000; ++i) {
    Bytes body(random() % 96);
    for (std::uint8_t& byte : body) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 24);
    const auto type = static_cast<std::uint16_t>(RTM_BASE + random() % 100);
    const auto change = read_notice(type, body);
    if (change) {
      EXPECT_LE(change->prefix_length, 128) << "seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace verbena::rdma
