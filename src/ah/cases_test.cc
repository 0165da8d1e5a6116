// Cases of docs/cases.md that no other test of the directory shows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Cases = AhWorld;

TEST_F(Cases, OneQueuePairReachesAThousandPeersWithAnAddressEach) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  QueuePair pair = make_pair();
  std::vector<AhHandle> handles;
  std::set<ibv_ah*> addresses;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    handles.push_back(std::move(*directory.acquire(to(2 + i), soon())));
    ibv_ah* address = sender.next(handles.back());
    ASSERT_TRUE(post(pair, address));
    addresses.insert(address);
  }
  EXPECT_EQ(addresses.size(), 1000U);
  EXPECT_EQ(live().addresses, 1000U);
  complete_sends(pair.get(), 1000);
  sender.completed(1000);
  sender.drained();
}

// A provider may leave the field as it was, and the kind of packet is not to be told from it.
TEST_F(Cases, WhateverTheServiceLevelOfACompletionIsTheReplyOnEthernetIsTheSame) {
  AhDirectory directory = make_directory();
  std::array<std::byte, 40> grh{};
  const std::array<std::uint8_t, 20> header{0x45, 0, 0, 152, 0, 0, 0x40, 0, 3, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1};
  std::transform(header.begin(), header.end(), grh.begin() + 20, [](std::uint8_t byte) { return std::byte{byte}; });
  ibv_wc completion{};
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV;
  completion.wc_flags = IBV_WC_GRH;
  completion.byte_len = 140;
  for (unsigned level = 0; level < 256; ++level) {
    completion.sl = static_cast<std::uint8_t>(level);
    const Result<Destination> reply = directory.reply_to(completion, grh);
    ASSERT_TRUE(reply) << level << ": " << reply.error().message;
    EXPECT_EQ(reply->gid, ipv4(2));
    EXPECT_EQ(reply->service_level, 0) << level;
  }
}

// One application, the same on two hosts whose tables are in another order: nothing names an index.
TEST_F(Cases, TwoHostsWithDifferentGidIndicesNeedNoSettingOfTheirOwn) {
  AhDirectory here = make_directory();
  const GidEntry first = here.effective(*here.acquire(to(2), soon()))->source;
  set_gids("fake0", 1,
           {{link_local(9), IBV_GID_TYPE_ROCE_V2, kNetdev},
            {},
            {},
            {link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev},
            {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev},
            {ipv4(1), IBV_GID_TYPE_ROCE_V1, kNetdev}});
  AhDirectory there = make_directory();
  const GidEntry second = there.effective(*there.acquire(to(2), soon()))->source;
  EXPECT_EQ(first.gid, second.gid);
  EXPECT_EQ(first.type, second.type);
  EXPECT_NE(first.index, second.index);
}

}  // namespace
}  // namespace verbena::fake
