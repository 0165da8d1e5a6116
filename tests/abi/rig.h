// What the tests of the C ABI stand on: the first device of ours, and queue pairs that are ready to use.
//
// Everything goes through <infiniband/verbs.h>; the program is linked with the software RNIC in front of the real
// library, and `lo` is the device.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sched.h>

namespace verbena::abi {

inline constexpr std::uint8_t kPort = 1;
inline constexpr std::uint32_t kQkey = 0x11111111;
inline constexpr std::size_t kGrh = 40;

// Read at the first verbs call of the process.
struct Surroundings {
  Surroundings() {
    ::setenv("VERBENA_DEVICES", "lo", 1);
    ::setenv("VERBENA_LOG", "error", 0);
  }
};
inline const Surroundings kSurroundings;

struct Closer {
  void operator()(ibv_context* context) const { EXPECT_EQ(0, ibv_close_device(context)); }
  void operator()(ibv_pd* pd) const { EXPECT_EQ(0, ibv_dealloc_pd(pd)); }
  void operator()(ibv_mr* mr) const { EXPECT_EQ(0, ibv_dereg_mr(mr)); }
  void operator()(ibv_td* td) const { EXPECT_EQ(0, ibv_dealloc_td(td)); }
  void operator()(ibv_xrcd* xrcd) const { EXPECT_EQ(0, ibv_close_xrcd(xrcd)); }
  void operator()(ibv_dm* dm) const { EXPECT_EQ(0, ibv_free_dm(dm)); }
  void operator()(ibv_mw* mw) const { EXPECT_EQ(0, ibv_dealloc_mw(mw)); }
  void operator()(ibv_comp_channel* channel) const { EXPECT_EQ(0, ibv_destroy_comp_channel(channel)); }
  void operator()(ibv_cq* cq) const { EXPECT_EQ(0, ibv_destroy_cq(cq)); }
  void operator()(ibv_srq* srq) const { EXPECT_EQ(0, ibv_destroy_srq(srq)); }
  void operator()(ibv_qp* qp) const { EXPECT_EQ(0, ibv_destroy_qp(qp)); }
  void operator()(ibv_ah* ah) const { EXPECT_EQ(0, ibv_destroy_ah(ah)); }
};
template <class T>
using Owned = std::unique_ptr<T, Closer>;

inline Owned<ibv_context> open_first_device() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  Owned<ibv_context> context(count > 0 ? ibv_open_device(list[0]) : nullptr);
  ibv_free_device_list(list);
  return context;
}

// The first used index of the port's table.
inline ibv_gid_entry first_gid(ibv_context* context, std::uint32_t port = kPort) {
  std::array<ibv_gid_entry, 64> entries{};
  EXPECT_LE(1, ibv_query_gid_table(context, entries.data(), entries.size(), 0));
  for (const ibv_gid_entry& entry : entries) {
    if (entry.port_num == port) return entry;
  }
  ADD_FAILURE() << "port " << port << " has no GID";
  return {};
}

inline ibv_ah_attr address_of(const ibv_gid_entry& gid) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = static_cast<std::uint8_t>(gid.port_num);
  attributes.grh.dgid = gid.gid;
  attributes.grh.sgid_index = static_cast<std::uint8_t>(gid.gid_index);
  attributes.grh.hop_limit = 64;
  return attributes;
}

// Takes completions until there are `wanted`; gives up after very many empty polls.
inline std::vector<ibv_wc> take_completions(ibv_cq* cq, std::size_t wanted) {
  constexpr int kPatience = 2'000'000;
  std::vector<ibv_wc> taken;
  for (int empty = 0; taken.size() < wanted && empty < kPatience;) {
    ibv_wc completion{};
    const int got = ibv_poll_cq(cq, 1, &completion);
    EXPECT_GE(got, 0);
    if (got == 1) {
      taken.push_back(completion);
    } else {
      ++empty;
      sched_yield();
    }
  }
  EXPECT_EQ(wanted, taken.size());
  taken.resize(wanted);
  return taken;
}

inline int to_init(ibv_qp* qp, std::uint32_t qkey = kQkey, std::uint8_t port = kPort) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  attributes.qkey = qkey;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

inline int to_state(ibv_qp* qp, ibv_qp_state state, int more = 0) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return ibv_modify_qp(qp, &attributes, IBV_QP_STATE | more);
}

inline void to_ready(ibv_qp* qp, std::uint32_t qkey = kQkey, std::uint8_t port = kPort) {
  ASSERT_EQ(0, to_init(qp, qkey, port));
  ASSERT_EQ(0, to_state(qp, IBV_QPS_RTR));
  ASSERT_EQ(0, to_state(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN));
}

inline ibv_qp_init_attr ud_attributes(ibv_cq* cq) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq;
  attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
  return attributes;
}

// A device, and one UD queue pair on it with registered memory: the first half to send from, the second to receive in.
class Rig : public ::testing::Test {
 protected:
  static constexpr std::size_t kHalf = 8192;

  void SetUp() override {
    context_ = open_first_device();
    ASSERT_TRUE(context_);
    pd_.reset(ibv_alloc_pd(context_.get()));
    ASSERT_TRUE(pd_);
    gid_ = first_gid(context_.get());
    memory_.assign(2 * kHalf, std::byte{0xee});
    mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    ASSERT_TRUE(mr_);
    cq_.reset(ibv_create_cq(context_.get(), 64, nullptr, nullptr, 0));
    ASSERT_TRUE(cq_);
  }

  Owned<ibv_qp> make_qp() {
    ibv_qp_init_attr attributes = ud_attributes(cq_.get());
    return Owned<ibv_qp>(ibv_create_qp(pd_.get(), &attributes));
  }
  Owned<ibv_qp> make_ready_qp() {
    auto qp = make_qp();
    EXPECT_TRUE(qp);
    if (qp) to_ready(qp.get());
    return qp;
  }
  Owned<ibv_ah> make_ah() {
    ibv_ah_attr attributes = address_of(gid_);
    return Owned<ibv_ah>(ibv_create_ah(pd_.get(), &attributes));
  }

  std::byte* sending() { return memory_.data(); }
  std::byte* receiving() { return memory_.data() + kHalf; }
  ibv_sge send_sge(std::uint32_t length, std::size_t at = 0) {
    return {reinterpret_cast<std::uint64_t>(sending() + at), length, mr_->lkey};
  }
  ibv_sge receive_sge(std::uint32_t length, std::size_t at = 0) {
    return {reinterpret_cast<std::uint64_t>(receiving() + at), length, mr_->lkey};
  }

  int post_receive(ibv_qp* qp, std::uint64_t id, std::uint32_t length = kHalf, std::size_t at = 0) {
    ibv_sge sge = receive_sge(length, at);
    ibv_recv_wr request{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &request, &bad);
  }
  ibv_send_wr send_request(ibv_sge* sge, ibv_ah* ah, std::uint32_t qpn, std::uint64_t id = 1) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud.ah = ah;
    request.wr.ud.remote_qpn = qpn;
    request.wr.ud.remote_qkey = kQkey;
    return request;
  }
  int post_send(ibv_qp* from, ibv_ah* ah, std::uint32_t qpn, std::uint32_t length, std::uint64_t id = 1) {
    ibv_sge sge = send_sge(length);
    ibv_send_wr request = send_request(&sge, ah, qpn, id);
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(from, &request, &bad);
  }

  std::vector<std::byte> memory_;
  ibv_gid_entry gid_{};
  Owned<ibv_context> context_;
  Owned<ibv_pd> pd_;
  Owned<ibv_mr> mr_;
  Owned<ibv_cq> cq_;
};

}  // namespace verbena::abi
