// Attributes that are refused, each with its errno: of address handles, and of every step of a queue pair's life.
#include "rig.h"

namespace verbena::abi {
namespace {

using Attributes = Rig;

struct BadAddress {
  const char* name;
  void (*spoil)(ibv_ah_attr&);
};

TEST_F(Attributes, EveryBadAddressIsRefused) {
  const BadAddress cases[] = {
      {"no GRH", [](ibv_ah_attr& a) { a.is_global = 0; }},
      {"no port", [](ibv_ah_attr& a) { a.port_num = 0; }},
      {"another port", [](ibv_ah_attr& a) { a.port_num = 2; }},
      {"an empty GID index", [](ibv_ah_attr& a) { a.grh.sgid_index = 200; }},
      {"the IPv4 address of no host",
       [](ibv_ah_attr& a) {
         a.grh.dgid = {};
         a.grh.dgid.raw[10] = a.grh.dgid.raw[11] = 0xff;
       }},
      {"the IPv4 address of all hosts",
       [](ibv_ah_attr& a) {
         a.grh.dgid = {};
         for (int i = 10; i < 16; ++i) a.grh.dgid.raw[i] = 0xff;
       }},
      {"the zero GID", [](ibv_ah_attr& a) { a.grh.dgid = {}; }},
      {"another family",
       [](ibv_ah_attr& a) {
         const bool ipv4 = a.grh.dgid.raw[10] == 0xff;
         a.grh.dgid = {};
         a.grh.dgid.raw[0] = ipv4 ? 0xfd : 0;
         a.grh.dgid.raw[10] = a.grh.dgid.raw[11] = ipv4 ? 0 : 0xff;
         a.grh.dgid.raw[15] = 1;
       }},
      {"a rate that does not exist", [](ibv_ah_attr& a) { a.static_rate = 200; }},
      {"a service level above 15", [](ibv_ah_attr& a) { a.sl = 16; }},
  };
  for (const BadAddress& one : cases) {
    ibv_ah_attr attributes = address_of(gid_);
    one.spoil(attributes);
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_ah(pd_.get(), &attributes)) << one.name;
    EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << one.name << ": " << errno;
  }
}

TEST_F(Attributes, AFlowLabelIsCutAndAHopLimitOfZeroIsTaken) {
  ibv_ah_attr attributes = address_of(gid_);
  attributes.grh.flow_label = 0xffffffff;
  attributes.grh.hop_limit = 0;
  attributes.dlid = 0xc000;
  Owned<ibv_ah> ah(ibv_create_ah(pd_.get(), &attributes));
  EXPECT_TRUE(ah);
}

TEST_F(Attributes, TheUdStateTableIsKept) {
  const int kAll = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  auto qp = make_qp();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = kQkey;
  for (const int missing : {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY}) {
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, kAll & ~missing)) << missing;
  }
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, kAll | IBV_QP_AV));
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, kAll | IBV_QP_ACCESS_FLAGS));
  attributes.port_num = 2;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, kAll));
  attributes.port_num = kPort;
  attributes.pkey_index = 1;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, kAll));
  attributes.pkey_index = 0;
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_RTR));
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_RTS, IBV_QP_SQ_PSN));
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_UNKNOWN));
  EXPECT_EQ(IBV_QPS_RESET, qp->state);

  ASSERT_EQ(0, ibv_modify_qp(qp.get(), &attributes, kAll));
  EXPECT_EQ(IBV_QPS_INIT, qp->state);
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_RTS, IBV_QP_SQ_PSN));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTR));
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_RTS));  // without SQ_PSN
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTS, IBV_QP_SQ_PSN));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_ERR));
  EXPECT_EQ(EINVAL, to_state(qp.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RESET));
  EXPECT_EQ(IBV_QPS_RESET, qp->state);
}

TEST_F(Attributes, AQueryTellsWhatWasSet) {
  auto qp = make_qp();
  ASSERT_EQ(0, to_init(qp.get(), 0x1234));
  ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTR));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = 0xabcdef;
  ASSERT_EQ(0, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN));
  attributes = {};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_QKEY, &init));
  EXPECT_EQ(IBV_QPS_RTS, attributes.qp_state);
  EXPECT_EQ(0x1234u, attributes.qkey);
  EXPECT_EQ(0xabcdefu, attributes.sq_psn);
  EXPECT_EQ(kPort, attributes.port_num);
  EXPECT_EQ(cq_.get(), init.send_cq);
  EXPECT_EQ(IBV_QPT_UD, init.qp_type);
  EXPECT_GE(init.cap.max_send_wr, 16u);
}

TEST_F(Attributes, TypesThatAreNotThereAreRefused) {
  for (const ibv_qp_type type : {IBV_QPT_DRIVER}) {
    ibv_qp_init_attr attributes = ud_attributes(cq_.get());
    attributes.qp_type = type;
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &attributes)) << type;
    EXPECT_EQ(EOPNOTSUPP, errno) << type;
  }
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  attributes.qp_type = static_cast<ibv_qp_type>(77);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &attributes));
  EXPECT_EQ(EINVAL, errno);
}

// A handle that was overwritten names nothing: an errno, and everything else stays usable.
template <class Object>
class Garbled {
 public:
  explicit Garbled(Object* object) : object_(object), handle_(object->handle) { object_->handle += 0x1000; }
  ~Garbled() { object_->handle = handle_; }

 private:
  Object* object_;
  std::uint32_t handle_;
};

TEST_F(Attributes, AnOverwrittenHandleNamesNothing) {
  auto qp = make_qp();
  auto ah = make_ah();
  ibv_srq_init_attr srq_attributes{nullptr, {16, 1, 0}};
  Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &srq_attributes));
  {
    const Garbled pd(pd_.get());
    const Garbled mr(mr_.get());
    const Garbled cq(cq_.get());
    const Garbled garbled_qp(qp.get());
    const Garbled garbled_ah(ah.get());
    const Garbled garbled_srq(srq.get());
    EXPECT_EQ(ENOENT, ibv_dealloc_pd(pd_.get()));
    EXPECT_EQ(ENOENT, ibv_dereg_mr(mr_.get()));
    EXPECT_EQ(ENOENT, ibv_destroy_cq(cq_.get()));
    EXPECT_EQ(ENOENT, ibv_destroy_qp(qp.get()));
    EXPECT_EQ(ENOENT, ibv_destroy_ah(ah.get()));
    EXPECT_EQ(ENOENT, ibv_destroy_srq(srq.get()));
    EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), memory_.data(), 64, 0));
    ibv_ah_attr attributes = address_of(gid_);
    EXPECT_EQ(nullptr, ibv_create_ah(pd_.get(), &attributes));
  }
  {
    const Garbled cq(cq_.get());
    ibv_qp_init_attr attributes = ud_attributes(cq_.get());
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &attributes));
  }
  to_ready(qp.get());
  ASSERT_EQ(0, post_receive(qp.get(), 1));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
}

}  // namespace
}  // namespace verbena::abi
