// Making and destroying: what each object is filled with, what keeps it alive, what is refused.
#include <thread>

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

using Objects = Rig;

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
};

bool has_net_raw() {
  Capabilities mine;
  EXPECT_EQ(0, ::syscall(SYS_capget, &mine.header, mine.data.data()));
  return (mine.data[0].effective & (1U << CAP_NET_RAW)) != 0;
}

void drop_net_raw() {
  Capabilities mine;
  EXPECT_EQ(0, ::syscall(SYS_capget, &mine.header, mine.data.data()));
  mine.data[0].effective &= ~(1U << CAP_NET_RAW);
  EXPECT_EQ(0, ::syscall(SYS_capset, &mine.header, mine.data.data()));
}

TEST_F(Objects, OurDevicesComeFirstAndCanBeAsked) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(nullptr, list);
  ASSERT_GE(count, 1);
  EXPECT_STREQ("verbena0", ibv_get_device_name(list[0]));
  EXPECT_EQ(IBV_NODE_CA, list[0]->node_type);
  EXPECT_EQ(IBV_TRANSPORT_IB, list[0]->transport_type);
  EXPECT_STREQ("/sys/class/infiniband/verbena0", list[0]->ibdev_path);
  EXPECT_NE(0u, ibv_get_device_guid(list[0]));
  EXPECT_EQ(-1, ibv_get_device_index(list[0]));
  EXPECT_EQ(nullptr, list[count]);
  ibv_free_device_list(list);
}

TEST_F(Objects, ADeviceOutlivesItsListWhileOpen) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(nullptr, list);
  Owned<ibv_context> context(ibv_open_device(list[0]));
  ASSERT_TRUE(context);
  ibv_free_device_list(list);
  EXPECT_STREQ("verbena0", ibv_get_device_name(context->device));
  EXPECT_GE(context->num_comp_vectors, 1);
  EXPECT_GE(context->async_fd, 0);
  EXPECT_GE(context->cmd_fd, 0);
}

TEST_F(Objects, TheDeviceTellsItsLimits) {
  ibv_device_attr attributes{};
  ASSERT_EQ(0, ibv_query_device(context_.get(), &attributes));
  EXPECT_EQ(1, attributes.phys_port_cnt);
  EXPECT_EQ(1, attributes.max_pkeys);
  EXPECT_EQ(ibv_get_device_guid(context_->device), attributes.node_guid);
  for (const int limit :
       {attributes.max_qp, attributes.max_qp_wr, attributes.max_sge, attributes.max_cq, attributes.max_cqe,
        attributes.max_mr, attributes.max_pd, attributes.max_ah, attributes.max_srq, attributes.max_srq_wr,
        attributes.max_srq_sge, attributes.max_mcast_grp}) {
    EXPECT_GT(limit, 0);
  }
  ibv_device_attr_ex extended{};
  ASSERT_EQ(0, ibv_query_device_ex(context_.get(), nullptr, &extended));
  EXPECT_EQ(0, std::memcmp(&attributes, &extended.orig_attr, sizeof attributes));
  EXPECT_EQ(1u, extended.phys_port_cnt_ex);
}

TEST_F(Objects, ThePortIsActiveEthernet) {
  ibv_port_attr port{};
  ASSERT_EQ(0, ibv_query_port(context_.get(), kPort, &port));
  EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
  EXPECT_EQ(IBV_LINK_LAYER_ETHERNET, port.link_layer);
  EXPECT_EQ(1, port.pkey_tbl_len);
  EXPECT_GT(port.gid_tbl_len, 0);
  EXPECT_GE(port.max_mtu, port.active_mtu);
  EXPECT_EQ(5, port.phys_state);
  EXPECT_EQ(EINVAL, ibv_query_port(context_.get(), 0, &port));
  EXPECT_EQ(EINVAL, ibv_query_port(context_.get(), 2, &port));
}

#undef ibv_query_port
TEST_F(Objects, TheExportedQueryPortWritesTheOldStructOnly) {
  struct {
    ibv_port_attr port;
    std::array<std::byte, 64> behind;
  } room;
  std::memset(&room, 0x5a, sizeof room);
  ASSERT_EQ(0, ibv_query_port(context_.get(), kPort, reinterpret_cast<_compat_ibv_port_attr*>(&room.port)));
  EXPECT_EQ(IBV_PORT_ACTIVE, room.port.state);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&room);
  for (std::size_t i = offsetof(ibv_port_attr, port_cap_flags2); i < sizeof room; ++i) ASSERT_EQ(0x5a, bytes[i]) << i;
}

TEST_F(Objects, TheGidTableIsTheSameThroughEveryCall) {
  ibv_gid_entry entries[64];
  const ssize_t count = ibv_query_gid_table(context_.get(), entries, 64, 0);
  ASSERT_GE(count, 1);
  for (ssize_t i = 0; i < count; ++i) {
    ibv_gid_entry entry{};
    ASSERT_EQ(0, ibv_query_gid_ex(context_.get(), kPort, entries[i].gid_index, &entry, 0));
    EXPECT_EQ(0, std::memcmp(&entries[i], &entry, sizeof entry));
    EXPECT_EQ(static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2), entry.gid_type);
    EXPECT_NE(0u, entry.ndev_ifindex);
    ibv_gid gid{};
    ASSERT_EQ(0, ibv_query_gid(context_.get(), kPort, static_cast<int>(entries[i].gid_index), &gid));
    EXPECT_EQ(0, std::memcmp(&gid, &entry.gid, sizeof gid));
  }
  ibv_gid_entry one{};
  EXPECT_EQ(count == 1 ? 1 : -EINVAL, ibv_query_gid_table(context_.get(), &one, 1, 0));
}

TEST_F(Objects, AnEmptyGidIndexIsZeroAndOneOutsideIsAnError) {
  ibv_port_attr port{};
  verbs_context* const extended = verbs_get_ctx(context_.get());
  ASSERT_NE(nullptr, extended);
  ASSERT_EQ(0, extended->query_port(context_.get(), kPort, &port, sizeof port));
  ibv_gid gid{};
  ibv_gid_entry entry{};
  EXPECT_EQ(0, ibv_query_gid(context_.get(), kPort, port.gid_tbl_len - 1, &gid));
  EXPECT_EQ(0u, gid.global.interface_id);
  EXPECT_EQ(ENODATA,
            ibv_query_gid_ex(context_.get(), kPort, static_cast<std::uint32_t>(port.gid_tbl_len - 1), &entry, 0));
  EXPECT_EQ(-1, ibv_query_gid(context_.get(), kPort, port.gid_tbl_len, &gid));
  EXPECT_EQ(-1, ibv_query_gid(context_.get(), kPort, -1, &gid));
  EXPECT_EQ(-1, ibv_query_gid(context_.get(), 2, 0, &gid));
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(context_.get(), kPort, 0, &entry, 1));
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(context_.get(), 2, 0, &entry, 0));
}

TEST_F(Objects, OneDefaultPkey) {
  __be16 pkey = 0;
  EXPECT_EQ(0, ibv_query_pkey(context_.get(), kPort, 0, &pkey));
  EXPECT_EQ(0xffff, pkey);
  EXPECT_EQ(-1, ibv_query_pkey(context_.get(), kPort, 1, &pkey));
  EXPECT_EQ(0, ibv_get_pkey_index(context_.get(), kPort, 0xffff));
  EXPECT_EQ(-1, ibv_get_pkey_index(context_.get(), kPort, 0x1234));
}

TEST_F(Objects, EveryObjectIsFilledWithWhereItBelongs) {
  EXPECT_EQ(context_.get(), pd_->context);
  EXPECT_EQ(context_.get(), mr_->context);
  EXPECT_EQ(pd_.get(), mr_->pd);
  EXPECT_EQ(memory_.data(), mr_->addr);
  EXPECT_EQ(memory_.size(), mr_->length);
  EXPECT_NE(0u, mr_->lkey);
  EXPECT_EQ(context_.get(), cq_->context);
  EXPECT_GE(cq_->cqe, 64);
  int mark = 0;
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  attributes.qp_context = &mark;
  Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
  ASSERT_TRUE(qp);
  EXPECT_EQ(context_.get(), qp->context);
  EXPECT_EQ(&mark, qp->qp_context);
  EXPECT_EQ(pd_.get(), qp->pd);
  EXPECT_EQ(cq_.get(), qp->send_cq);
  EXPECT_EQ(cq_.get(), qp->recv_cq);
  EXPECT_EQ(nullptr, qp->srq);
  EXPECT_EQ(IBV_QPT_UD, qp->qp_type);
  EXPECT_EQ(IBV_QPS_RESET, qp->state);
  EXPECT_GE(qp->qp_num, 16u);
  EXPECT_GE(attributes.cap.max_send_wr, 16u);
  EXPECT_GE(attributes.cap.max_inline_data, 64u);
  auto ah = make_ah();
  ASSERT_TRUE(ah);
  EXPECT_EQ(context_.get(), ah->context);
  EXPECT_EQ(pd_.get(), ah->pd);
}

TEST_F(Objects, APdInUseIsBusy) {
  Owned<ibv_pd> pd(ibv_alloc_pd(context_.get()));
  {
    Owned<ibv_mr> mr(ibv_reg_mr(pd.get(), memory_.data(), 64, 0));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  }
  {
    ibv_qp_init_attr attributes = ud_attributes(cq_.get());
    Owned<ibv_qp> qp(ibv_create_qp(pd.get(), &attributes));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  }
  {
    ibv_ah_attr attributes = address_of(gid_);
    Owned<ibv_ah> ah(ibv_create_ah(pd.get(), &attributes));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  }
  {
    ibv_srq_init_attr attributes{nullptr, {16, 1, 0}};
    Owned<ibv_srq> srq(ibv_create_srq(pd.get(), &attributes));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  }
}

TEST_F(Objects, ACqASrqAndAChannelInUseAreBusy) {
  Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
  ASSERT_TRUE(channel);
  Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 8, nullptr, channel.get(), 0));
  ASSERT_TRUE(cq);
  EXPECT_EQ(1, channel->refcnt);
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel.get()));
  ibv_srq_init_attr srq_attributes{nullptr, {16, 1, 0}};
  Owned<ibv_srq> srq(ibv_create_srq(pd_.get(), &srq_attributes));
  ASSERT_TRUE(srq);
  ibv_qp_init_attr attributes = ud_attributes(cq.get());
  attributes.srq = srq.get();
  Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
  ASSERT_TRUE(qp);
  EXPECT_EQ(EBUSY, ibv_destroy_cq(cq.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq.get()));
}

TEST_F(Objects, ReregisteringLeavesTheOldRegionValid) {
  EXPECT_LT(ibv_rereg_mr(mr_.get(), 0, nullptr, nullptr, 0, 0), 0);
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr_.get(), 1 << 7, nullptr, nullptr, 0, 0));
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr_.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 0, 0));
}

TEST_F(Objects, OptionalAccessBitsAreIgnoredAndUnknownOnesAreRefused) {
  Owned<ibv_mr> relaxed(ibv_reg_mr_iova2(pd_.get(), memory_.data(), 64, 0x1000, IBV_ACCESS_OPTIONAL_RANGE));
  ASSERT_TRUE(relaxed);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr_iova2(pd_.get(), memory_.data(), 64, 0, 1u << 19));
  EXPECT_EQ(EINVAL, errno);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), memory_.data(), 64, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(Objects, WhatIsNotSupportedSaysSo) {
  const auto refused = [](const void* object) { return object == nullptr && errno == EOPNOTSUPP; };
  EXPECT_TRUE(refused(ibv_reg_dmabuf_mr(pd_.get(), 0, 4096, 0, -1, 0)));
  ibv_wq_init_attr work_queue{};
  EXPECT_TRUE(refused(ibv_create_wq(context_.get(), &work_queue)));
  ibv_rwq_ind_table_init_attr table{};
  EXPECT_TRUE(refused(ibv_create_rwq_ind_table(context_.get(), &table)));
  ibv_counters_init_attr counters{};
  EXPECT_TRUE(refused(ibv_create_counters(context_.get(), &counters)));
  ibv_flow_action_esp_attr esp{};
  EXPECT_TRUE(refused(ibv_create_flow_action_esp(context_.get(), &esp)));
  auto qp = make_qp();
  ibv_flow_attr flow{};
  EXPECT_EQ(nullptr, ibv_create_flow(qp.get(), &flow));  // of UD
  EXPECT_EQ(has_net_raw() ? EOPNOTSUPP : EPERM, errno);
  ibv_qp_rate_limit_attr rate{};
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp_rate_limit(qp.get(), &rate));
  ibv_ece ece{};
  EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(qp.get(), &ece));
  EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(qp.get(), &ece));
  EXPECT_EQ(0, ibv_query_qp_data_in_order(qp.get(), IBV_WR_SEND, 0));
}

// A raw packet queue pair is a matter of rights first, as with the kernel.
TEST_F(Objects, RawPacketsNeedARight) {
  ibv_qp_init_attr attributes = ud_attributes(cq_.get());
  attributes.qp_type = IBV_QPT_RAW_PACKET;
  errno = 0;
  Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
  EXPECT_EQ(has_net_raw(), qp != nullptr);
  if (!has_net_raw()) {
    EXPECT_EQ(EPERM, errno);
    return;
  }
  std::thread unprivileged([&] {
    drop_net_raw();  // of this thread only
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &attributes));
    EXPECT_EQ(EPERM, errno);
  });
  unprivileged.join();
}

TEST_F(Objects, StringsAreThoseOfTheRealLibrary) {
  EXPECT_STREQ("success", ibv_wc_status_str(IBV_WC_SUCCESS));
  EXPECT_STREQ("active", ibv_port_state_str(IBV_PORT_ACTIVE));
  EXPECT_NE(nullptr, ibv_event_type_str(IBV_EVENT_GID_CHANGE));
  EXPECT_NE(nullptr, ibv_node_type_str(IBV_NODE_CA));
  EXPECT_EQ(4, ibv_rate_to_mult(IBV_RATE_10_GBPS));
  EXPECT_EQ(IBV_RATE_10_GBPS, mult_to_ibv_rate(4));
  EXPECT_EQ(10000, ibv_rate_to_mbps(IBV_RATE_10_GBPS));
  EXPECT_EQ(0, ibv_fork_init());
}

struct BadCap {
  const char* name;
  void (*spoil)(ibv_qp_init_attr&);
  int error;
};

TEST_F(Objects, QueuePairsBeyondTheLimitsAreRefused) {
  const BadCap cases[] = {
      {"no send cq", [](ibv_qp_init_attr& a) { a.send_cq = nullptr; }, EINVAL},
      {"no receive cq", [](ibv_qp_init_attr& a) { a.recv_cq = nullptr; }, EINVAL},
      {"send sges", [](ibv_qp_init_attr& a) { a.cap.max_send_sge = 1000; }, EINVAL},
      {"receive sges", [](ibv_qp_init_attr& a) { a.cap.max_recv_sge = 1000; }, EINVAL},
      {"send requests", [](ibv_qp_init_attr& a) { a.cap.max_send_wr = 1u << 30; }, EINVAL},
      {"receive requests", [](ibv_qp_init_attr& a) { a.cap.max_recv_wr = 1u << 30; }, EINVAL},
      {"inline data", [](ibv_qp_init_attr& a) { a.cap.max_inline_data = 1u << 20; }, EINVAL},
  };
  for (const BadCap& one : cases) {
    ibv_qp_init_attr attributes = ud_attributes(cq_.get());
    one.spoil(attributes);
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &attributes)) << one.name;
    EXPECT_EQ(one.error, errno) << one.name;
  }
}

TEST_F(Objects, CompletionQueuesBeyondTheLimitsAreRefused) {
  for (const int cqe : {0, -1, 1 << 30}) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_cq(context_.get(), cqe, nullptr, nullptr, 0)) << cqe;
    EXPECT_EQ(EINVAL, errno) << cqe;
  }
  EXPECT_EQ(0, ibv_resize_cq(cq_.get(), 128));
  EXPECT_GE(cq_->cqe, 128);
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq_.get(), 0));
}

TEST_F(Objects, ACompletionVectorIsOneOfTheContexts) {
  const int count = context_->num_comp_vectors;
  for (int vector = 0; vector < count; ++vector) {
    EXPECT_TRUE(Owned<ibv_cq>(ibv_create_cq(context_.get(), 4, nullptr, nullptr, vector))) << vector;
  }
  for (const int vector : {-1, count, 1000000}) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_cq(context_.get(), 4, nullptr, nullptr, vector)) << vector;
    EXPECT_EQ(EINVAL, errno) << vector;
  }
}

TEST_F(Objects, MemoryIsRegisteredOnlyWhereThereIsSome) {
  constexpr std::size_t kPage = 4096;
  void* const memory = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  auto* const bytes = static_cast<std::byte*>(memory);
  ASSERT_EQ(0, ::mprotect(bytes, kPage, PROT_READ));
  ASSERT_EQ(0, ::munmap(bytes + 2 * kPage, kPage));
  struct Case {
    void* address;
    std::size_t length;
    int access;
    int error;
  };
  for (const Case& c : {Case{bytes + kPage, kPage, IBV_ACCESS_LOCAL_WRITE, 0}, Case{bytes, 2 * kPage, 0, 0},
                        Case{bytes, 2 * kPage, IBV_ACCESS_LOCAL_WRITE, EFAULT}, Case{bytes, 3 * kPage, 0, EFAULT},
                        Case{bytes + kPage, 0, 0, EINVAL}, Case{nullptr, kPage, 0, EFAULT},
                        Case{bytes + kPage, std::size_t{1} << 60, IBV_ACCESS_LOCAL_WRITE, EFAULT},
                        Case{bytes + kPage, kPage, IBV_ACCESS_ON_DEMAND, 0},
                        Case{nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, 0}}) {
    errno = 0;
    const Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), c.address, c.length, c.access));
    EXPECT_EQ(c.error == 0, mr != nullptr) << c.address << "+" << c.length;
    if (c.error != 0) {
      EXPECT_EQ(c.error, errno) << c.address << "+" << c.length;
    }
  }
  ASSERT_EQ(0, ::munmap(memory, 2 * kPage));
}

}  // namespace
}  // namespace verbena::abi
