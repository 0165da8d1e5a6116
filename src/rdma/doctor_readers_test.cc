// What the gatherers read from the kernel's texts and netlink messages.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include "rdma/doctor_interfaces.h"
#include "rdma/doctor_process.h"
#include "rdma/doctor_rdma_netlink.h"
#include "rdma/netlink.h"

namespace verbena::rdma {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The body that a request with these attributes would have.
Bytes body_of(const NetlinkRequest& request) {
  const Bytes bytes = request.bytes();
  return Bytes(bytes.begin() + NLMSG_HDRLEN, bytes.end());
}

template <class Number>
Bytes bytes_of(const Number& number) {
  Bytes bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

TEST(UdpTable, HasTheHoldersOfOnePortInBothFamilies) {
  const std::string v4 =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer "
      "drops\n"
      "  12: 0100000A:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 4242 2 "
      "0000000000000000 0\n"
      "  13: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4243 2 "
      "0000000000000000 0\n"
      "nonsense\n";
  const auto holders = read_udp_table(v4, kRoceUdpPort);
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders.front().address, "10.0.0.1");
  EXPECT_EQ(holders.front().uid, 1001U);
  EXPECT_EQ(holders.front().inode, 4242U);
  const std::string v6 =
      "  1: 000080FE000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 0:0 00:0 0 0 0 7 2 0 0\n";
  ASSERT_EQ(read_udp_table(v6, kRoceUdpPort).size(), 1U);
  EXPECT_EQ(read_udp_table(v6, kRoceUdpPort).front().address, "fe80::1");
}

TEST(Capabilities, AreTheEffectiveOnes) {
  EXPECT_EQ(read_effective_capabilities("CapPrm:\t00000000000000ff\nCapEff:\t0000000000004000\n"), 0x4000U);
  EXPECT_EQ(read_effective_capabilities("Name: x\n"), 0U);
}

TEST(Inet6Addresses, TellTentativeAndDuplicate) {
  const auto addresses = read_inet6_addresses(
      "fe800000000000000000000000000001 0a 40 20 80     eth0\n"
      "20010db8000000000000000000000002 0a 40 00 48     eth0\n"
      "broken 01 80 10 80 lo\n");
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(addresses[0].first, 10U);
  EXPECT_EQ(addresses[0].second.gid, *parse_gid("fe80::1"));
  EXPECT_EQ(addresses[0].second.prefix_length, 64);
  EXPECT_FALSE(addresses[0].second.tentative);
  EXPECT_TRUE(addresses[1].second.tentative && addresses[1].second.duplicate);
}

TEST(Neighbour, IsReadWithItsStateAndMac) {
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = 5;
  header.ndm_state = NUD_STALE;
  const Bytes address{10, 0, 0, 2};
  const Bytes mac{2, 0, 0, 0, 0, 9};
  NetlinkRequest message(RTM_NEWNEIGH);
  message.fixed(header).attribute(NDA_DST, address).attribute(NDA_LLADDR, mac);
  const auto neighbour = read_neighbour(body_of(message));
  ASSERT_TRUE(neighbour);
  EXPECT_EQ(neighbour->state, NeighbourFacts::State::kStale);
  EXPECT_EQ(neighbour->address, *parse_gid("10.0.0.2"));
  EXPECT_EQ(neighbour->netdev, 5U);
  EXPECT_EQ(neighbour->mac, (MacAddress{2, 0, 0, 0, 0, 9}));
  EXPECT_FALSE(read_neighbour({}));
}

TEST(Dcb, TellsPfcAndDscpRules) {
  ieee_pfc pfc{};
  pfc.pfc_en = 0x08;
  dcb_app rule{};
  rule.selector = 5;
  rule.priority = 3;
  rule.protocol = 26;
  const Bytes app = body_of(NetlinkRequest(0).attribute(DCB_ATTR_IEEE_APP, bytes_of(rule)));
  const Bytes ieee =
      body_of(NetlinkRequest(0).attribute(DCB_ATTR_IEEE_PFC, bytes_of(pfc)).attribute(DCB_ATTR_IEEE_APP_TABLE, app));
  LossControl loss;
  read_dcb(body_of(NetlinkRequest(0).attribute(DCB_ATTR_IEEE, ieee)), loss);
  EXPECT_EQ(loss.pfc_priorities, std::uint8_t{0x08});
  ASSERT_EQ(loss.dscp_priorities.size(), 1U);
  EXPECT_EQ(loss.dscp_priorities.front(), (std::pair{26, 3}));
}

TEST(RdmaNetlink, TellsModeNameAndResources) {
  const auto mode = [](std::uint8_t value) {
    return read_namespace_mode(body_of(NetlinkRequest(0).attribute(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, Bytes{value})));
  };
  EXPECT_EQ(mode(0), RdmaNamespaceMode::kExclusive);
  EXPECT_EQ(mode(1), RdmaNamespaceMode::kShared);
  EXPECT_FALSE(read_namespace_mode({}));
  const Bytes entry = body_of(NetlinkRequest(0)
                                  .text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, "qp")
                                  .attribute(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, bytes_of(std::uint64_t{12})));
  const Bytes summary = body_of(NetlinkRequest(0).attribute(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, entry));
  const Bytes body =
      body_of(NetlinkRequest(0).text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0").attribute(RDMA_NLDEV_ATTR_RES_SUMMARY, summary));
  EXPECT_EQ(read_device_name(body), "rxe0");
  const auto resources = read_resources(body);
  ASSERT_EQ(resources.size(), 1U);
  EXPECT_EQ(resources.front().name, "qp");
  EXPECT_EQ(resources.front().current, 12U);
}

TEST(Netlink, EveryTruncationIsSurvived) {
  const Bytes entry = body_of(NetlinkRequest(0).text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, "qp"));
  const Bytes summary = body_of(NetlinkRequest(0).attribute(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, entry));
  const Bytes all = NetlinkRequest(7, Answers::kAll).attribute(RDMA_NLDEV_ATTR_RES_SUMMARY, summary).bytes();
  for (std::size_t size = 0; size < all.size(); ++size) {
    const Bytes cut(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
    for (const NetlinkMessage& message : split_messages(cut)) static_cast<void>(read_resources(message.body));
    static_cast<void>(read_resources(cut));
    LossControl loss;
    read_dcb(cut, loss);
    static_cast<void>(read_neighbour(cut));
  }
  EXPECT_EQ(split_messages(all).size(), 1U);
}

TEST(Netlink, TheKernelListsTheLoopbackInterface) {
  const auto interfaces = gather_interfaces();
  const auto loopback =
      std::find_if(interfaces.begin(), interfaces.end(), [](const auto& each) { return each.loopback; });
  ASSERT_NE(loopback, interfaces.end());
  EXPECT_GT(loopback->mtu, 0U);
}

}  // namespace
}  // namespace verbena::rdma
