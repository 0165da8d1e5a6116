// An InfiniBand port through the C API: what it tells, multicast by MGID and MLID, and connections by LID.
#include <initializer_list>

#include <endian.h>

#include "rig.h"

namespace verbena::abi {
namespace {

constexpr std::uint16_t kLid = 8;
constexpr std::uint16_t kMulticastLid = 0xc005;

class InfinibandPort : public Rig {
 protected:
  // Read at the first verbs call of the process.
  static void SetUpTestSuite() {
    ::setenv("VERBENA_DEVICES", "lo/link_layer=infiniband/lid=8/lmc=1/sm_lid=3/sm_sl=2/pkeys=0xffff+0x8001", 1);
  }
  // As a subnet's IPoIB broadcast group is named.
  static ibv_gid group() {
    ibv_gid gid{};
    gid.raw[0] = 0xff;
    gid.raw[1] = 0x12;
    gid.raw[2] = 0x40;
    gid.raw[3] = 0x1b;
    gid.raw[15] = 0x77;
    return gid;
  }
  ibv_ah_attr address_of_group(std::uint16_t lid) const {
    ibv_ah_attr attributes = address_of(gid_);
    attributes.grh.dgid = group();
    attributes.dlid = lid;
    attributes.sl = 4;
    return attributes;
  }
};

TEST_F(InfinibandPort, TellsWhatItsSubnetGaveIt) {
  ibv_port_attr port{};
  ASSERT_EQ(0, ibv_query_port(context_.get(), kPort, &port));
  EXPECT_EQ(IBV_LINK_LAYER_INFINIBAND, port.link_layer);
  EXPECT_EQ(kLid, port.lid);
  EXPECT_EQ(1, port.lmc);
  EXPECT_EQ(3, port.sm_lid);
  EXPECT_EQ(2, port.sm_sl);
  EXPECT_EQ(0, port.flags & IBV_QPF_GRH_REQUIRED);
  EXPECT_EQ(0u, port.port_cap_flags & IBV_PORT_IP_BASED_GIDS);
  EXPECT_EQ(static_cast<std::uint32_t>(IBV_GID_TYPE_IB), gid_.gid_type);
  EXPECT_EQ(0u, gid_.ndev_ifindex);
  EXPECT_EQ(0xfe, gid_.gid.raw[0]);
}

TEST_F(InfinibandPort, HasAPartitionTable) {
  __be16 pkey = 0;
  ASSERT_EQ(0, ibv_query_pkey(context_.get(), kPort, 1, &pkey));
  EXPECT_EQ(0x8001, be16toh(pkey));
  EXPECT_EQ(1, ibv_get_pkey_index(context_.get(), kPort, htobe16(0x8001)));
  EXPECT_EQ(-1, ibv_get_pkey_index(context_.get(), kPort, htobe16(0x8002)));
  ASSERT_EQ(0, ibv_query_pkey(context_.get(), kPort, 31, &pkey));
  EXPECT_EQ(0, pkey);
  EXPECT_EQ(-1, ibv_query_pkey(context_.get(), kPort, 32, &pkey));
  Owned<ibv_qp> qp = make_qp();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.pkey_index = 2;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
}

TEST_F(InfinibandPort, AGroupIsReachedByMgidAndMlidTogether) {
  const ibv_gid gid = group();
  auto member = make_ready_qp();
  auto elsewhere = make_ready_qp();
  auto sender = make_ready_qp();
  ASSERT_EQ(0, ibv_attach_mcast(member.get(), &gid, kMulticastLid));
  ASSERT_EQ(0, ibv_attach_mcast(elsewhere.get(), &gid, kMulticastLid + 1));
  ASSERT_EQ(0, post_receive(member.get(), 1, 1000, 0));
  ASSERT_EQ(0, post_receive(elsewhere.get(), 2, 1000, 1000));
  ibv_ah_attr attributes = address_of_group(kMulticastLid);
  Owned<ibv_ah> ah(ibv_create_ah(pd_.get(), &attributes));
  ASSERT_TRUE(ah);
  ASSERT_EQ(0, post_send(sender.get(), ah.get(), 0xffffff, 32));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) {
    EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    if (completion.opcode != IBV_WC_RECV) continue;
    EXPECT_EQ(1u, completion.wr_id);
    EXPECT_EQ(kLid, completion.slid);
    EXPECT_EQ(4, completion.sl);
    EXPECT_EQ(0, completion.dlid_path_bits);
    EXPECT_TRUE(completion.wc_flags & IBV_WC_GRH);
  }
  EXPECT_EQ(EINVAL, ibv_detach_mcast(member.get(), &gid, kMulticastLid + 1));
  EXPECT_EQ(0, ibv_detach_mcast(member.get(), &gid, kMulticastLid));
  EXPECT_EQ(0, ibv_detach_mcast(elsewhere.get(), &gid, kMulticastLid + 1));
}

TEST_F(InfinibandPort, AGroupNeedsAMulticastLid) {
  const ibv_gid gid = group();
  auto qp = make_ready_qp();
  for (const std::uint16_t lid : std::initializer_list<std::uint16_t>{0, 8, 0xbfff, 0xffff}) {
    EXPECT_EQ(EINVAL, ibv_attach_mcast(qp.get(), &gid, lid)) << lid;
  }
}

}  // namespace
}  // namespace verbena::abi
