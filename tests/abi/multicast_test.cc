// Multicast groups through the C API.
#include "rig.h"

namespace verbena::abi {
namespace {

class Multicast : public Rig {
 protected:
  // A group of the family of the device's first address.
  ibv_gid group() const {
    ibv_gid gid{};
    if (gid_.gid.raw[10] == 0xff && gid_.gid.raw[0] == 0) {
      gid.raw[10] = gid.raw[11] = 0xff;
      gid.raw[12] = 239;
      gid.raw[13] = 7;
      gid.raw[15] = 9;
    } else {
      gid.raw[0] = 0xff;
      gid.raw[1] = 0x02;
      gid.raw[15] = 0x77;
    }
    return gid;
  }
};

TEST_F(Multicast, EachAttachedQueuePairGetsACopy) {
  const ibv_gid gid = group();
  auto first = make_ready_qp();
  auto second = make_ready_qp();
  auto stranger = make_ready_qp();
  ASSERT_EQ(0, ibv_attach_mcast(first.get(), &gid, 0));
  ASSERT_EQ(0, ibv_attach_mcast(second.get(), &gid, 0));
  EXPECT_EQ(0, ibv_attach_mcast(second.get(), &gid, 0));  // once is enough
  ASSERT_EQ(0, post_receive(first.get(), 1, 1000, 0));
  ASSERT_EQ(0, post_receive(second.get(), 2, 1000, 1000));
  ASSERT_EQ(0, post_receive(stranger.get(), 3, 1000, 2000));
  ibv_ah_attr attributes = address_of(gid_);
  attributes.grh.dgid = gid;
  Owned<ibv_ah> ah(ibv_create_ah(pd_.get(), &attributes));
  ASSERT_TRUE(ah);
  ASSERT_EQ(0, post_send(stranger.get(), ah.get(), 0xffffff, 32));
  std::uint64_t receives = 0;
  for (const ibv_wc& completion : take_completions(cq_.get(), 3)) {
    EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    if (completion.opcode == IBV_WC_RECV) receives += completion.wr_id;
  }
  EXPECT_EQ(3u, receives);
  EXPECT_EQ(EBUSY, ibv_destroy_qp(first.get()));
  EXPECT_EQ(0, ibv_detach_mcast(first.get(), &gid, 0));
  EXPECT_EQ(EINVAL, ibv_detach_mcast(first.get(), &gid, 0));
  EXPECT_EQ(0, ibv_detach_mcast(second.get(), &gid, 0));
}

TEST_F(Multicast, OnlyAGroupCanBeAttachedTo) {
  auto qp = make_ready_qp();
  EXPECT_EQ(EINVAL, ibv_attach_mcast(qp.get(), &gid_.gid, 0));
  const ibv_gid zero{};
  EXPECT_EQ(EINVAL, ibv_attach_mcast(qp.get(), &zero, 0));
}

TEST_F(Multicast, TheEthernetAddressOfAGroupIsWorkedOut) {
  ibv_ah_attr attributes = address_of(gid_);
  attributes.grh.dgid = group();
  std::uint8_t mac[6] = {};
  std::uint16_t vlan = 0;
  ASSERT_EQ(0, ibv_resolve_eth_l2_from_gid(context_.get(), &attributes, mac, &vlan));
  EXPECT_TRUE(mac[0] == 0x01 || mac[0] == 0x33);
  EXPECT_EQ(0xffff, vlan);
  attributes = address_of(gid_);
  EXPECT_EQ(0, ibv_resolve_eth_l2_from_gid(context_.get(), &attributes, mac, &vlan));  // to itself
  attributes.port_num = 2;
  EXPECT_GT(0, ibv_resolve_eth_l2_from_gid(context_.get(), &attributes, mac, &vlan));
}

}  // namespace
}  // namespace verbena::abi
