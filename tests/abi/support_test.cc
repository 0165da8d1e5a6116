// What the table of src/verbs/support.h says of each call, type and attribute is what a program meets. Each test walks
// a table and does what its rows name; a call of <infiniband/verbs.h> without a row, or a row without a probe, fails.
#include "verbs/support.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/qp_state.h"
#include "rig.h"

namespace verbena::abi {
namespace {

using engine::AttrMask;
using engine::QpState;
using engine::QpType;
using verbs::AttributeRow;
using verbs::SupportRow;

constexpr const char* kHeader = "/usr/include/infiniband/verbs.h";
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

bool may_use_raw_network() {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

class Support : public Rig {
 protected:
  void SetUp() override {
    errno = 0;
    Rig::SetUp();
    mr_.reset(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), kAccess | IBV_ACCESS_MW_BIND));
    ASSERT_TRUE(mr_);
    ibv_xrcd_init_attr attributes{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    domain_.reset(ibv_open_xrcd(context_.get(), &attributes));
    ASSERT_TRUE(domain_);
  }

  ibv_qp* create(ibv_qp_type type, std::uint64_t extended_sends = 0) {
    ibv_qp_init_attr_ex attributes{};
    attributes.send_cq = attributes.recv_cq = cq_.get();
    attributes.cap = {
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    attributes.qp_type = type;
    attributes.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    if (extended_sends != 0) attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.pd = pd_.get();
    attributes.xrcd = domain_.get();
    attributes.send_ops_flags = extended_sends;
    return ibv_create_qp_ex(context_.get(), &attributes);
  }
  ibv_cq_ex* create_extended_cq(std::uint64_t fields) {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = 16;
    attributes.wc_flags = fields;
    return ibv_create_cq_ex(context_.get(), &attributes);
  }
  Owned<ibv_srq> create_shared(ibv_srq_type type) {
    ibv_srq_init_attr_ex attributes{};
    attributes.attr = {16, 1, 0};
    attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    if (type == IBV_SRQT_XRC) attributes.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attributes.srq_type = type;
    attributes.pd = pd_.get();
    attributes.xrcd = domain_.get();
    attributes.cq = cq_.get();
    return Owned<ibv_srq>(ibv_create_srq_ex(context_.get(), &attributes));
  }
  Owned<ibv_dm> make_dm() {
    ibv_alloc_dm_attr attributes{.length = 4096, .log_align_req = 0, .comp_mask = 0};
    return Owned<ibv_dm>(ibv_alloc_dm(context_.get(), &attributes));
  }
  // Good values for whatever a step may take.
  ibv_qp_attr values(ibv_qp* qp, QpState from, QpState to) const {
    ibv_qp_attr attributes{};
    attributes.qp_state = static_cast<ibv_qp_state>(to);
    attributes.cur_qp_state = static_cast<ibv_qp_state>(from);
    attributes.port_num = kPort;
    attributes.qkey = kQkey;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attributes.ah_attr = address_of(gid_);
    attributes.alt_ah_attr = attributes.ah_attr;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = qp->qp_num;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = 12;
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.path_mig_state = IBV_MIG_MIGRATED;
    attributes.rate_limit = 10'000;
    return attributes;
  }
  int modify(ibv_qp* qp, QpType type, QpState from, QpState to, AttrMask change = 0) const {
    const AttrMask required = engine::edge_of(type, from, to).required;
    ibv_qp_attr attributes = values(qp, from, to);
    return ibv_modify_qp(qp, &attributes, static_cast<int>((engine::kAttrState | required) ^ change));
  }
  // A queue pair in `state`, by steps that go there.
  Owned<ibv_qp> bring_to(QpType type, QpState state) {
    Owned<ibv_qp> qp(create(static_cast<ibv_qp_type>(type)));
    if (qp == nullptr) return qp;
    QpState at = QpState::kReset;
    const auto go = [&](QpState to) {
      EXPECT_EQ(0, modify(qp.get(), type, at, to)) << name_of(type) << " to " << name_of(to);
      at = to;
    };
    if (state == QpState::kError) {
      go(QpState::kInit);
      go(QpState::kError);
      return qp;
    }
    for (const QpState next :
         {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend, QpState::kSendQueueDrained}) {
      if (at == state) break;
      go(next);
    }
    return qp;
  }
  // A queue pair of RC that is connected to itself, with a receive posted.
  Owned<ibv_qp> loop(std::uint64_t extended_sends = 0) {
    Owned<ibv_qp> qp(create(IBV_QPT_RC, extended_sends));
    EXPECT_TRUE(qp);
    QpState at = QpState::kReset;
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
      ibv_qp_attr attributes = values(qp.get(), at, to);
      attributes.qp_access_flags = kAccess;
      const AttrMask mask = engine::kAttrState | engine::edge_of(QpType::kRc, at, to).required;
      EXPECT_EQ(0, ibv_modify_qp(qp.get(), &attributes, static_cast<int>(mask)));
      at = to;
    }
    EXPECT_EQ(0, post_receive(qp.get(), 7, 256));
    return qp;
  }
  // How one extended send, built by `build`, ends: 0, what ibv_wr_complete() answers, or EIO for a bad completion.
  int extended_send(std::uint64_t operation, const std::function<void(ibv_qp_ex*)>& build, bool has_data = true) {
    auto qp = loop(operation);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp.get());
    if (extended == nullptr) return EINVAL;
    ibv_wr_start(extended);
    extended->wr_id = 1;
    extended->wr_flags = IBV_SEND_SIGNALED;
    build(extended);
    if (has_data) ibv_wr_set_sge(extended, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
    if (const int error = ibv_wr_complete(extended)) return error;
    return finished();
  }
  // Of the next send completion: 0, or EIO.
  int finished(ibv_cq* cq = nullptr) {
    for (int i = 0; i < 2'000'000; ++i) {
      ibv_wc completion{};
      if (ibv_poll_cq(cq == nullptr ? cq_.get() : cq, 1, &completion) == 0) {
        sched_yield();
        continue;
      }
      if (completion.status != IBV_WC_SUCCESS) return EIO;
      if (completion.wr_id == 1) return 0;
    }
    return ETIME;
  }
  std::uint64_t target() { return reinterpret_cast<std::uint64_t>(receiving() + 1024); }
  // A completion, read by `read` through the extended calls.
  int read_field(std::uint64_t field, const std::function<void(ibv_cq_ex*)>& read) {
    Owned<ibv_cq> cq(reinterpret_cast<ibv_cq*>(create_extended_cq(field)));
    if (cq == nullptr) return errno;
    auto* const extended = reinterpret_cast<ibv_cq_ex*>(cq.get());
    ibv_qp_init_attr attributes = ud_attributes(cq.get());
    Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &attributes));
    to_ready(qp.get());
    auto ah = make_ah();
    EXPECT_EQ(0, post_send(qp.get(), ah.get(), 0xfffff0, 8));
    ibv_poll_cq_attr start{};
    int error = ENOENT;
    for (int i = 0; i < 2'000'000 && error == ENOENT; ++i) error = ibv_start_poll(extended, &start);
    if (error != 0) return error;
    read(extended);
    EXPECT_EQ(ENOENT, ibv_next_poll(extended));
    ibv_end_poll(extended);
    return 0;
  }
  std::map<std::string_view, std::function<int()>> probes();
  void add_object_probes(std::map<std::string_view, std::function<int()>>& all);
  void add_queue_probes(std::map<std::string_view, std::function<int()>>& all);
  void add_send_probes(std::map<std::string_view, std::function<int()>>& all);
  void add_refused_probes(std::map<std::string_view, std::function<int()>>& all);
  void add_name_probes(std::map<std::string_view, std::function<int()>>& all);

  Owned<ibv_xrcd> domain_;
};

using Probes = std::map<std::string_view, std::function<int()>>;

template <class Pointer>
int made(const Pointer& pointer) {
  return pointer != nullptr ? 0 : errno;
}
int held(bool fact) {
  return fact ? 0 : EPROTO;
}

// --- devices, domains, memory

void Support::add_object_probes(Probes& all) {
  const auto listed = [this] {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    const bool found = list != nullptr && std::find(list, list + count, context_->device) != list + count;
    ibv_free_device_list(list);
    return held(found);
  };
  all["ibv_get_device_list"] = all["ibv_free_device_list"] = listed;
  all["ibv_get_device_name"] = [this] { return held(ibv_get_device_name(context_->device) != nullptr); };
  all["ibv_get_device_guid"] = [this] { return held(ibv_get_device_guid(context_->device) != 0); };
  all["ibv_get_device_index"] = [this] { return held(ibv_get_device_index(context_->device) == -1); };
  all["ibv_open_device"] = all["ibv_close_device"] = [this] {
    ibv_context* const second = ibv_open_device(context_->device);
    return second == nullptr ? errno : ibv_close_device(second);
  };
  all["ibv_import_device"] = [this] {
    const int fd = ::dup(context_->cmd_fd);
    Owned<ibv_context> second(ibv_import_device(fd));
    const int error = made(second);
    ::close(fd);
    return error;
  };
  all["ibv_query_device"] = [this] {
    ibv_device_attr attributes{};
    return ibv_query_device(context_.get(), &attributes);
  };
  all["ibv_query_device_ex"] = [this] {
    ibv_device_attr_ex attributes{};
    return ibv_query_device_ex(context_.get(), nullptr, &attributes);
  };
  all["ibv_query_rt_values_ex"] = [this] {
    ibv_values_ex wanted{};
    wanted.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return ibv_query_rt_values_ex(context_.get(), &wanted);
  };
  all["ibv_query_port"] = [this] {
    ibv_port_attr attributes{};
    return ibv_query_port(context_.get(), kPort, &attributes);
  };
  all["ibv_query_gid"] = [this] {
    ibv_gid gid{};
    return ibv_query_gid(context_.get(), kPort, static_cast<int>(gid_.gid_index), &gid);
  };
  all["ibv_query_gid_ex"] = [this] {
    ibv_gid_entry entry{};
    return ibv_query_gid_ex(context_.get(), kPort, gid_.gid_index, &entry, 0);
  };
  all["ibv_query_gid_table"] = [this] {
    std::array<ibv_gid_entry, 64> entries{};
    return held(ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0) > 0);
  };
  all["ibv_query_pkey"] = [this] {
    __be16 pkey = 0;
    return ibv_query_pkey(context_.get(), kPort, 0, &pkey);
  };
  all["ibv_get_pkey_index"] = [this] { return held(ibv_get_pkey_index(context_.get(), kPort, 0xffff) == 0); };
  all["ibv_get_async_event"] = all["ibv_ack_async_event"] = [this] {
    auto srq = create_shared(IBV_SRQT_BASIC);
    ibv_qp_init_attr init = ud_attributes(cq_.get());
    init.srq = srq.get();
    Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &init));
    EXPECT_EQ(0, to_init(qp.get()));
    EXPECT_EQ(0, to_state(qp.get(), IBV_QPS_ERR));
    ibv_async_event event{};
    const int error = ibv_get_async_event(context_.get(), &event);
    if (error == 0) ibv_ack_async_event(&event);
    return error;
  };
  all["ibv_fork_init"] = [] { return ibv_fork_init(); };
  all["ibv_is_fork_initialized"] = [] { return held(ibv_is_fork_initialized() != IBV_FORK_DISABLED); };

  all["ibv_alloc_pd"] = all["ibv_dealloc_pd"] = [this] {
    ibv_pd* const pd = ibv_alloc_pd(context_.get());
    return pd == nullptr ? errno : ibv_dealloc_pd(pd);
  };
  all["ibv_import_pd"] = all["ibv_unimport_pd"] = [this] {
    ibv_pd* const pd = ibv_import_pd(context_.get(), pd_->handle);
    const int error = made(pd);
    if (pd != nullptr) ibv_unimport_pd(pd);
    return error;
  };
  all["ibv_alloc_td"] = all["ibv_dealloc_td"] = [this] {
    ibv_td_init_attr attributes{};
    ibv_td* const td = ibv_alloc_td(context_.get(), &attributes);
    return td == nullptr ? errno : ibv_dealloc_td(td);
  };
  all["ibv_alloc_parent_domain"] = [this] {
    ibv_parent_domain_init_attr attributes{};
    attributes.pd = pd_.get();
    return made(Owned<ibv_pd>(ibv_alloc_parent_domain(context_.get(), &attributes)));
  };
  all["ibv_open_xrcd"] = all["ibv_close_xrcd"] = [this] {
    ibv_xrcd_init_attr attributes{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    ibv_xrcd* const xrcd = ibv_open_xrcd(context_.get(), &attributes);
    return xrcd == nullptr ? errno : ibv_close_xrcd(xrcd);
  };

  all["ibv_reg_mr"] = all["ibv_dereg_mr"] = [this] {
    ibv_mr* const mr = ibv_reg_mr(pd_.get(), memory_.data(), 64, 0);
    return mr == nullptr ? errno : ibv_dereg_mr(mr);
  };
  all["ibv_reg_mr_iova"] = [this] { return made(Owned<ibv_mr>(ibv_reg_mr_iova(pd_.get(), memory_.data(), 64, 0, 0))); };
  all["ibv_reg_mr_iova2"] = [this] {
    return made(Owned<ibv_mr>(ibv_reg_mr_iova2(pd_.get(), memory_.data(), 64, 0, 0)));
  };
  all["ibv_reg_dmabuf_mr"] = [this] { return made(ibv_reg_dmabuf_mr(pd_.get(), 0, 64, 0, -1, 0)); };
  all["ibv_rereg_mr"] = [this] {
    Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), 64, 0));
    return ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE);
  };
  all["ibv_import_mr"] = all["ibv_unimport_mr"] = [this] {
    ibv_mr* const mr = ibv_import_mr(pd_.get(), mr_->handle);
    const int error = made(mr);
    if (mr != nullptr) ibv_unimport_mr(mr);
    return error;
  };
  all["ibv_alloc_null_mr"] = [this] { return made(Owned<ibv_mr>(ibv_alloc_null_mr(pd_.get()))); };
  all["ibv_advise_mr"] = [this] {
    Owned<ibv_mr> mr(ibv_reg_mr(pd_.get(), memory_.data(), 64, IBV_ACCESS_ON_DEMAND));
    if (mr == nullptr) return errno;
    ibv_sge piece{reinterpret_cast<std::uint64_t>(memory_.data()), 64, mr->lkey};
    return ibv_advise_mr(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1);
  };
  all["ibv_alloc_dm"] = all["ibv_free_dm"] = [this] {
    ibv_dm* const dm = make_dm().release();
    return dm == nullptr ? errno : ibv_free_dm(dm);
  };
  all["ibv_reg_dm_mr"] = [this] {
    const auto dm = make_dm();
    return made(Owned<ibv_mr>(ibv_reg_dm_mr(pd_.get(), dm.get(), 0, 64, IBV_ACCESS_ZERO_BASED)));
  };
  all["ibv_memcpy_to_dm"] = [this] { return ibv_memcpy_to_dm(make_dm().get(), 0, memory_.data(), 64); };
  all["ibv_memcpy_from_dm"] = [this] { return ibv_memcpy_from_dm(receiving(), make_dm().get(), 0, 64); };
  all["ibv_import_dm"] = all["ibv_unimport_dm"] = [this] {
    const auto dm = make_dm();
    ibv_dm* const second = ibv_import_dm(context_.get(), dm->handle);
    const int error = made(second);
    if (second != nullptr) ibv_unimport_dm(second);
    return error;
  };
  all["ibv_alloc_mw"] = all["ibv_dealloc_mw"] = [this] {
    ibv_mw* const mw = ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1);
    return mw == nullptr ? errno : ibv_dealloc_mw(mw);
  };
  all["ibv_bind_mw"] = [this] {
    auto qp = loop();
    Owned<ibv_mw> mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1));
    ibv_mw_bind binding{};
    binding.wr_id = 1;
    binding.send_flags = IBV_SEND_SIGNALED;
    binding.bind_info = {mr_.get(), reinterpret_cast<std::uint64_t>(memory_.data()), 64, IBV_ACCESS_REMOTE_WRITE};
    const int error = ibv_bind_mw(qp.get(), mw.get(), &binding);
    return error != 0 ? error : finished();
  };
  all["ibv_inc_rkey"] = [] { return held(ibv_inc_rkey(0x1ff) == 0x100); };
}

// --- completions, address handles, receives, queue pairs

void Support::add_queue_probes(Probes& all) {
  all["ibv_create_comp_channel"] = all["ibv_destroy_comp_channel"] = [this] {
    ibv_comp_channel* const channel = ibv_create_comp_channel(context_.get());
    return channel == nullptr ? errno : ibv_destroy_comp_channel(channel);
  };
  all["ibv_create_cq"] = all["ibv_destroy_cq"] = [this] {
    ibv_cq* const cq = ibv_create_cq(context_.get(), 16, nullptr, nullptr, 0);
    return cq == nullptr ? errno : ibv_destroy_cq(cq);
  };
  all["ibv_create_cq_ex"] = all["ibv_cq_ex_to_cq"] = [this] {
    ibv_cq_ex* const cq = create_extended_cq(0);
    return cq == nullptr ? errno : ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
  };
  all["ibv_resize_cq"] = [this] { return ibv_resize_cq(cq_.get(), 128); };
  all["ibv_modify_cq"] = [this] {
    ibv_modify_cq_attr attributes{.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 0, .cq_period = 0}};
    return ibv_modify_cq(cq_.get(), &attributes);
  };
  all["ibv_poll_cq"] = [this] {
    ibv_wc completion{};
    return held(ibv_poll_cq(cq_.get(), 1, &completion) == 0);
  };
  all["ibv_req_notify_cq"] = all["ibv_get_cq_event"] = all["ibv_ack_cq_events"] = [this] {
    Owned<ibv_comp_channel> channel(ibv_create_comp_channel(context_.get()));
    Owned<ibv_cq> cq(ibv_create_cq(context_.get(), 16, nullptr, channel.get(), 0));
    if (const int error = ibv_req_notify_cq(cq.get(), 0)) return error;
    ibv_qp_init_attr init = ud_attributes(cq.get());
    Owned<ibv_qp> qp(ibv_create_qp(pd_.get(), &init));
    to_ready(qp.get());
    auto ah = make_ah();
    EXPECT_EQ(0, post_send(qp.get(), ah.get(), 0xfffff0, 8));
    ibv_cq* told = nullptr;
    void* told_context = nullptr;
    if (ibv_get_cq_event(channel.get(), &told, &told_context) != 0) return errno;
    ibv_ack_cq_events(told, 1);
    return held(told == cq.get());
  };
  all["ibv_start_poll"] = all["ibv_next_poll"] =
      all["ibv_end_poll"] = [this] { return read_field(0, [](ibv_cq_ex*) {}); };
  const auto field = [this, &all](std::string_view name, std::uint64_t flag, void (*read)(ibv_cq_ex*)) {
    all[name] = [=, this] { return read_field(flag, read); };
  };
  field("ibv_wc_read_opcode", 0, [](ibv_cq_ex* cq) { EXPECT_EQ(IBV_WC_SEND, ibv_wc_read_opcode(cq)); });
  field("ibv_wc_read_vendor_err", 0, [](ibv_cq_ex* cq) { EXPECT_EQ(0U, ibv_wc_read_vendor_err(cq)); });
  field("ibv_wc_read_byte_len", IBV_WC_EX_WITH_BYTE_LEN, [](ibv_cq_ex* cq) { ibv_wc_read_byte_len(cq); });
  field("ibv_wc_read_imm_data", IBV_WC_EX_WITH_IMM, [](ibv_cq_ex* cq) { ibv_wc_read_imm_data(cq); });
  field("ibv_wc_read_invalidated_rkey", IBV_WC_EX_WITH_IMM, [](ibv_cq_ex* cq) { ibv_wc_read_invalidated_rkey(cq); });
  field("ibv_wc_read_qp_num", IBV_WC_EX_WITH_QP_NUM, [](ibv_cq_ex* cq) { EXPECT_NE(0U, ibv_wc_read_qp_num(cq)); });
  field("ibv_wc_read_src_qp", IBV_WC_EX_WITH_SRC_QP, [](ibv_cq_ex* cq) { ibv_wc_read_src_qp(cq); });
  field("ibv_wc_read_wc_flags", 0, [](ibv_cq_ex* cq) { ibv_wc_read_wc_flags(cq); });
  field("ibv_wc_read_slid", IBV_WC_EX_WITH_SLID, [](ibv_cq_ex* cq) { ibv_wc_read_slid(cq); });
  field("ibv_wc_read_sl", IBV_WC_EX_WITH_SL, [](ibv_cq_ex* cq) { ibv_wc_read_sl(cq); });
  field("ibv_wc_read_dlid_path_bits", IBV_WC_EX_WITH_DLID_PATH_BITS,
        [](ibv_cq_ex* cq) { ibv_wc_read_dlid_path_bits(cq); });
  field("ibv_wc_read_completion_ts", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
        [](ibv_cq_ex* cq) { EXPECT_NE(0U, ibv_wc_read_completion_ts(cq)); });
  field("ibv_wc_read_completion_wallclock_ns", IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
        [](ibv_cq_ex* cq) { EXPECT_NE(0U, ibv_wc_read_completion_wallclock_ns(cq)); });
  field("ibv_wc_read_cvlan", IBV_WC_EX_WITH_CVLAN, [](ibv_cq_ex* cq) { ibv_wc_read_cvlan(cq); });
  field("ibv_wc_read_flow_tag", IBV_WC_EX_WITH_FLOW_TAG, [](ibv_cq_ex* cq) { ibv_wc_read_flow_tag(cq); });
  field("ibv_wc_read_tm_info", IBV_WC_EX_WITH_TM_INFO, [](ibv_cq_ex* cq) {
    ibv_wc_tm_info info{};
    ibv_wc_read_tm_info(cq, &info);
  });

  all["ibv_create_ah"] = all["ibv_destroy_ah"] = [this] { return made(make_ah()); };
  const auto received = [this](ibv_wc& completion, ibv_grh& header) {
    auto qp = make_ready_qp();
    auto ah = make_ah();
    EXPECT_EQ(0, post_receive(qp.get(), 2));
    EXPECT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 8));
    for (const ibv_wc& one : take_completions(cq_.get(), 2)) {
      if (one.opcode == IBV_WC_RECV) completion = one;
    }
    std::memcpy(&header, receiving(), sizeof header);
  };
  all["ibv_create_ah_from_wc"] = [=, this] {
    ibv_wc completion{};
    ibv_grh header{};
    received(completion, header);
    return made(Owned<ibv_ah>(ibv_create_ah_from_wc(pd_.get(), &completion, &header, kPort)));
  };
  all["ibv_init_ah_from_wc"] = [=, this] {
    ibv_wc completion{};
    ibv_grh header{};
    received(completion, header);
    ibv_ah_attr attributes{};
    return ibv_init_ah_from_wc(context_.get(), kPort, &completion, &header, &attributes);
  };
  all["ibv_resolve_eth_l2_from_gid"] = [this] {
    ibv_ah_attr attributes = address_of(gid_);
    std::array<std::uint8_t, 6> mac{};
    std::uint16_t vlan = 0;
    return ibv_resolve_eth_l2_from_gid(context_.get(), &attributes, mac.data(), &vlan);
  };
  all["ibv_flow_label_to_udp_sport"] = [] { return held(ibv_flow_label_to_udp_sport(1) >= 0xc000); };
  all["ibv_attach_mcast"] = all["ibv_detach_mcast"] = [this] {
    auto qp = make_ready_qp();
    ibv_gid group{};
    const std::array<std::uint8_t, 16> address{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
    std::copy(address.begin(), address.end(), group.raw);
    const int error = ibv_attach_mcast(qp.get(), &group, 0);
    return error != 0 ? error : ibv_detach_mcast(qp.get(), &group, 0);
  };

  all["ibv_create_srq"] = all["ibv_destroy_srq"] = [this] {
    ibv_srq_init_attr attributes{};
    attributes.attr = {16, 1, 0};
    ibv_srq* const srq = ibv_create_srq(pd_.get(), &attributes);
    return srq == nullptr ? errno : ibv_destroy_srq(srq);
  };
  all["ibv_create_srq_ex"] = [this] { return made(create_shared(IBV_SRQT_XRC)); };
  all["ibv_modify_srq"] = [this] {
    ibv_srq_attr attributes{.max_wr = 0, .max_sge = 0, .srq_limit = 1};
    return ibv_modify_srq(create_shared(IBV_SRQT_BASIC).get(), &attributes, IBV_SRQ_LIMIT);
  };
  all["ibv_query_srq"] = [this] {
    ibv_srq_attr attributes{};
    return ibv_query_srq(create_shared(IBV_SRQT_BASIC).get(), &attributes);
  };
  all["ibv_get_srq_num"] = [this] {
    std::uint32_t number = 0;
    EXPECT_EQ(EINVAL, ibv_get_srq_num(create_shared(IBV_SRQT_BASIC).get(), &number));
    return ibv_get_srq_num(create_shared(IBV_SRQT_XRC).get(), &number);
  };
  all["ibv_post_srq_recv"] = [this] {
    auto srq = create_shared(IBV_SRQT_BASIC);
    ibv_sge sge = receive_sge(64);
    ibv_recv_wr request{.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq.get(), &request, &bad);
  };

  all["ibv_create_qp"] = all["ibv_destroy_qp"] = [this] { return made(make_qp()); };
  all["ibv_create_qp_ex"] = [this] { return made(Owned<ibv_qp>(create(IBV_QPT_RC, IBV_QP_EX_WITH_SEND))); };
  all["ibv_open_qp"] = [this] {
    Owned<ibv_qp> qp(create(IBV_QPT_XRC_RECV));
    ibv_qp_open_attr attributes{.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                .qp_num = qp->qp_num,
                                .xrcd = domain_.get(),
                                .qp_context = nullptr,
                                .qp_type = IBV_QPT_XRC_RECV};
    return made(Owned<ibv_qp>(ibv_open_qp(context_.get(), &attributes)));
  };
  all["ibv_qp_to_qp_ex"] = [this] {
    EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(make_qp().get()));
    return held(ibv_qp_to_qp_ex(Owned<ibv_qp>(create(IBV_QPT_UD, IBV_QP_EX_WITH_SEND)).get()) != nullptr);
  };
  all["ibv_modify_qp"] = [this] { return to_init(make_qp().get()); };
  all["ibv_query_qp"] = [this] {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    return ibv_query_qp(make_qp().get(), &attributes, IBV_QP_STATE, &init);
  };
  all["ibv_post_send"] = [this] {
    auto qp = make_ready_qp();
    auto ah = make_ah();
    return post_send(qp.get(), ah.get(), 0xfffff0, 8);
  };
  all["ibv_post_recv"] = [this] { return post_receive(make_ready_qp().get(), 1); };
  all["ibv_query_qp_data_in_order"] = [this] {
    return held(ibv_query_qp_data_in_order(make_qp().get(), IBV_WR_SEND, 0) == 0);
  };
  all["ibv_modify_qp_rate_limit"] = [this] {
    ibv_qp_rate_limit_attr attributes{};
    return ibv_modify_qp_rate_limit(make_qp().get(), &attributes);
  };
  all["ibv_query_ece"] = [this] {
    ibv_ece ece{};
    return ibv_query_ece(make_qp().get(), &ece);
  };
  all["ibv_set_ece"] = [this] {
    ibv_ece ece{};
    return ibv_set_ece(make_qp().get(), &ece);
  };
}

// --- extended sends

void Support::add_send_probes(Probes& all) {
  const auto plain = [this] { return extended_send(IBV_QP_EX_WITH_SEND, ibv_wr_send); };
  for (const char* name : {"ibv_wr_start", "ibv_wr_complete", "ibv_wr_send", "ibv_wr_set_sge"}) all[name] = plain;
  all["ibv_wr_abort"] = [this] {
    auto qp = loop(IBV_QP_EX_WITH_SEND);
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_start(extended);
    ibv_wr_send(extended);
    ibv_wr_abort(extended);
    return 0;
  };
  all["ibv_wr_send_imm"] = [this] {
    return extended_send(IBV_QP_EX_WITH_SEND_WITH_IMM, [](ibv_qp_ex* qp) { ibv_wr_send_imm(qp, 1); });
  };
  all["ibv_wr_send_inv"] = [this] {  // the key names no window: the far end refuses it, as it must
    const int error = extended_send(IBV_QP_EX_WITH_SEND_WITH_INV, [](ibv_qp_ex* qp) { ibv_wr_send_inv(qp, 0x1234); });
    return held(error == EIO);
  };
  all["ibv_wr_rdma_write"] = [this] {
    return extended_send(IBV_QP_EX_WITH_RDMA_WRITE,
                         [this](ibv_qp_ex* qp) { ibv_wr_rdma_write(qp, mr_->rkey, target()); });
  };
  all["ibv_wr_rdma_write_imm"] = [this] {
    return extended_send(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
                         [this](ibv_qp_ex* qp) { ibv_wr_rdma_write_imm(qp, mr_->rkey, target(), 1); });
  };
  all["ibv_wr_rdma_read"] = [this] {
    return extended_send(IBV_QP_EX_WITH_RDMA_READ,
                         [this](ibv_qp_ex* qp) { ibv_wr_rdma_read(qp, mr_->rkey, target()); });
  };
  all["ibv_wr_atomic_cmp_swp"] = [this] {
    return extended_send(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
                         [this](ibv_qp_ex* qp) { ibv_wr_atomic_cmp_swp(qp, mr_->rkey, target(), 0, 1); });
  };
  all["ibv_wr_atomic_fetch_add"] = [this] {
    return extended_send(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
                         [this](ibv_qp_ex* qp) { ibv_wr_atomic_fetch_add(qp, mr_->rkey, target(), 1); });
  };
  all["ibv_wr_atomic_write"] = [this] {
    static constexpr std::uint64_t kValue = 5;
    return extended_send(
        IBV_QP_EX_WITH_ATOMIC_WRITE, [this](ibv_qp_ex* qp) { ibv_wr_atomic_write(qp, mr_->rkey, target(), &kValue); },
        false);
  };
  all["ibv_wr_bind_mw"] = [this] {
    Owned<ibv_mw> mw(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2));
    const ibv_mw_bind_info info{mr_.get(), reinterpret_cast<std::uint64_t>(memory_.data()), 64,
                                IBV_ACCESS_REMOTE_WRITE};
    return extended_send(
        IBV_QP_EX_WITH_BIND_MW, [&](ibv_qp_ex* qp) { ibv_wr_bind_mw(qp, mw.get(), ibv_inc_rkey(mw->rkey), &info); },
        false);
  };
  all["ibv_wr_local_inv"] = [this] {  // the key names no window: the request fails, as it must
    const int error = extended_send(
        IBV_QP_EX_WITH_LOCAL_INV, [](ibv_qp_ex* qp) { ibv_wr_local_inv(qp, 0x1234); }, false);
    return held(error == EIO);
  };
  all["ibv_wr_set_sge_list"] = [this] {
    ibv_sge list = send_sge(8);
    return extended_send(
        IBV_QP_EX_WITH_SEND,
        [&](ibv_qp_ex* qp) {
          ibv_wr_send(qp);
          ibv_wr_set_sge_list(qp, 1, &list);
        },
        false);
  };
  all["ibv_wr_set_inline_data"] = [this] {
    return extended_send(
        IBV_QP_EX_WITH_SEND,
        [this](ibv_qp_ex* qp) {
          ibv_wr_send(qp);
          ibv_wr_set_inline_data(qp, sending(), 8);
        },
        false);
  };
  all["ibv_wr_set_inline_data_list"] = [this] {
    ibv_data_buf list{.addr = sending(), .length = 8};
    return extended_send(
        IBV_QP_EX_WITH_SEND,
        [&](ibv_qp_ex* qp) {
          ibv_wr_send(qp);
          ibv_wr_set_inline_data_list(qp, 1, &list);
        },
        false);
  };
  all["ibv_wr_set_ud_addr"] = [this] {
    Owned<ibv_qp> qp(create(IBV_QPT_UD, IBV_QP_EX_WITH_SEND));
    to_ready(qp.get());
    auto ah = make_ah();
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_start(extended);
    extended->wr_id = 1;
    extended->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(extended);
    ibv_wr_set_ud_addr(extended, ah.get(), 0xfffff0, kQkey);
    ibv_wr_set_sge(extended, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
    const int error = ibv_wr_complete(extended);
    return error != 0 ? error : finished();
  };
  all["ibv_wr_set_xrc_srqn"] = [this] {
    Owned<ibv_qp> qp(create(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND));
    QpState at = QpState::kReset;
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
      EXPECT_EQ(0, modify(qp.get(), QpType::kXrcSend, at, to));
      at = to;
    }
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp.get());
    ibv_wr_start(extended);
    ibv_wr_send(extended);
    ibv_wr_set_xrc_srqn(extended, 1);
    ibv_wr_set_sge(extended, mr_->lkey, reinterpret_cast<std::uint64_t>(sending()), 8);
    return ibv_wr_complete(extended);
  };
  all["ibv_wr_send_tso"] = [this] { return made(Owned<ibv_qp>(create(IBV_QPT_UD, IBV_QP_EX_WITH_TSO))); };
}

// --- what is not there

void Support::add_refused_probes(Probes& all) {
  all["ibv_post_srq_ops"] = [this] {
    ibv_ops_wr operation{};
    ibv_ops_wr* bad = nullptr;
    return ibv_post_srq_ops(create_shared(IBV_SRQT_BASIC).get(), &operation, &bad);
  };
  all["ibv_create_wq"] = all["ibv_post_wq_recv"] = [this] {
    ibv_wq_init_attr attributes{};
    return made(ibv_create_wq(context_.get(), &attributes));
  };
  // Objects that nobody can have made: what a call does before it looks at more than the context.
  all["ibv_modify_wq"] = [this] {
    ibv_wq wq{};
    wq.context = context_.get();
    ibv_wq_attr attributes{};
    return ibv_modify_wq(&wq, &attributes);
  };
  all["ibv_destroy_wq"] = [this] {
    ibv_wq wq{};
    wq.context = context_.get();
    return ibv_destroy_wq(&wq);
  };
  all["ibv_create_rwq_ind_table"] = [this] {
    ibv_rwq_ind_table_init_attr attributes{};
    return made(ibv_create_rwq_ind_table(context_.get(), &attributes));
  };
  all["ibv_destroy_rwq_ind_table"] = [this] {
    ibv_rwq_ind_table table{};
    table.context = context_.get();
    return ibv_destroy_rwq_ind_table(&table);
  };
  all["ibv_create_flow"] = all["ibv_destroy_flow"] = [this] {
    ibv_flow_attr attributes{};
    attributes.type = IBV_FLOW_ATTR_NORMAL;
    attributes.size = sizeof attributes;
    attributes.port = kPort;
    Owned<ibv_qp> qp(may_use_raw_network() ? create(IBV_QPT_RAW_PACKET) : make_qp().release());
    ibv_flow* const flow = ibv_create_flow(qp.get(), &attributes);
    if (!may_use_raw_network()) return held(flow == nullptr && errno == EPERM);
    return flow == nullptr ? errno : ibv_destroy_flow(flow);
  };
  all["ibv_create_flow_action_esp"] = [this] {
    ibv_flow_action_esp_attr attributes{};
    return made(ibv_create_flow_action_esp(context_.get(), &attributes));
  };
  all["ibv_modify_flow_action_esp"] = [this] {
    ibv_flow_action action{};
    action.context = context_.get();
    ibv_flow_action_esp_attr attributes{};
    return ibv_modify_flow_action_esp(&action, &attributes);
  };
  all["ibv_destroy_flow_action"] = [this] {
    ibv_flow_action action{};
    action.context = context_.get();
    return ibv_destroy_flow_action(&action);
  };
  all["ibv_create_counters"] = [this] {
    ibv_counters_init_attr attributes{};
    return made(ibv_create_counters(context_.get(), &attributes));
  };
  all["ibv_destroy_counters"] = [this] {
    ibv_counters counters{};
    counters.context = context_.get();
    return ibv_destroy_counters(&counters);
  };
  all["ibv_attach_counters_point_flow"] = [this] {
    ibv_counters counters{};
    counters.context = context_.get();
    ibv_counter_attach_attr attributes{};
    return ibv_attach_counters_point_flow(&counters, &attributes, nullptr);
  };
  all["ibv_read_counters"] = [this] {
    ibv_counters counters{};
    counters.context = context_.get();
    std::uint64_t value = 0;
    return ibv_read_counters(&counters, &value, 1, 0);
  };
}

void Support::add_name_probes(Probes& all) {
  all["ibv_node_type_str"] = [] { return held(ibv_node_type_str(IBV_NODE_CA) != nullptr); };
  all["ibv_port_state_str"] = [] { return held(ibv_port_state_str(IBV_PORT_ACTIVE) != nullptr); };
  all["ibv_event_type_str"] = [] { return held(ibv_event_type_str(IBV_EVENT_QP_FATAL) != nullptr); };
  all["ibv_wc_status_str"] = [] { return held(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR) != nullptr); };
  all["ibv_rate_to_mult"] = [] { return held(ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4); };
  all["ibv_rate_to_mbps"] = [] { return held(ibv_rate_to_mbps(IBV_RATE_10_GBPS) == 10'000); };
  all["mult_to_ibv_rate"] = [] { return held(mult_to_ibv_rate(4) == IBV_RATE_10_GBPS); };
  all["mbps_to_ibv_rate"] = [] { return held(mbps_to_ibv_rate(10'000) == IBV_RATE_10_GBPS); };
  all["ibv_is_qpt_supported"] = [] { return held(ibv_is_qpt_supported(1U << IBV_QPT_RC, IBV_QPT_RC) == 1); };
}

Probes Support::probes() {
  Probes all;
  add_object_probes(all);
  add_queue_probes(all);
  add_send_probes(all);
  add_refused_probes(all);
  add_name_probes(all);
  return all;
}

// --- the walks

TEST_F(Support, EachCallDoesWhatItsRowSays) {
  const Probes all = probes();
  std::set<std::string_view> named;
  for (const SupportRow& row : verbs::kVerbRows) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_TRUE(named.insert(row.name).second) << "two rows";
    const auto probe = all.find(row.name);
    if (probe == all.end()) {
      ADD_FAILURE() << "nothing tries it";
      continue;
    }
    errno = 0;
    EXPECT_EQ(row.error, probe->second());
    std::array<ibv_wc, 16> left{};  // of the probe
    while (ibv_poll_cq(cq_.get(), static_cast<int>(left.size()), left.data()) > 0) continue;
  }
  for (const auto& [name, probe] : all) EXPECT_EQ(1U, named.count(name)) << name << " has no row";
  std::size_t rows = 0;
  for (const auto& section : verbs::kVerbSections) rows += section.count;
  EXPECT_EQ(rows, verbs::kVerbRows.size());
}

TEST_F(Support, EachCallOfTheHeaderHasARow) {
  std::ifstream file(kHeader);
  if (!file) GTEST_SKIP() << kHeader << " is not there";
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::string code;
  for (std::size_t at = 0; at < text.size();) {  // without comments
    const std::size_t begin = std::min(text.find("/*", at), text.size());
    code.append(text, at, begin - at);
    const std::size_t end = text.find("*/", begin);
    at = end == std::string::npos ? text.size() : end + 2;
  }
  std::set<std::string, std::less<>> rows{"ibv_static_providers"};  // for statically linked programs
  for (const SupportRow& row : verbs::kVerbRows) rows.emplace(row.name);
  const std::regex call(R"((struct\s+|enum\s+|\(\*)?\b((?:ibv|mbps_to_ibv|mult_to_ibv)_[a-z0-9_]+)\s*\()");
  std::size_t found = 0;
  for (std::sregex_iterator at(code.begin(), code.end(), call), end; at != end; ++at) {
    if ((*at)[1].matched) continue;  // a type, or a pointer in a structure
    ++found;
    EXPECT_EQ(1U, rows.count((*at)[2].str())) << (*at)[2].str() << " has no row";
  }
  EXPECT_GT(found, 150U);
}

TEST_F(Support, EachTypeOfQueuePairIsMadeOrRefused) {
  const std::map<std::string_view, ibv_qp_type> types{{"IBV_QPT_RC", IBV_QPT_RC},
                                                      {"IBV_QPT_UC", IBV_QPT_UC},
                                                      {"IBV_QPT_UD", IBV_QPT_UD},
                                                      {"IBV_QPT_XRC_SEND", IBV_QPT_XRC_SEND},
                                                      {"IBV_QPT_XRC_RECV", IBV_QPT_XRC_RECV},
                                                      {"IBV_QPT_RAW_PACKET", IBV_QPT_RAW_PACKET},
                                                      {"IBV_QPT_DRIVER", IBV_QPT_DRIVER}};
  EXPECT_EQ(types.size(), verbs::kQpTypeRows.size());
  for (const SupportRow& row : verbs::kQpTypeRows) {
    SCOPED_TRACE(std::string(row.name));
    const ibv_qp_type type = types.at(row.name);
    const bool needs_right = type == IBV_QPT_RAW_PACKET && !may_use_raw_network();
    errno = 0;
    Owned<ibv_qp> qp(create(type));
    EXPECT_EQ(needs_right ? EPERM : row.error, made(qp));
  }
  for (const int number : {0, 1, 5, 6, 7, 11, 254}) {
    errno = 0;
    EXPECT_EQ(nullptr, Owned<ibv_qp>(create(static_cast<ibv_qp_type>(number)))) << number;
    EXPECT_EQ(EINVAL, errno) << number;
  }
}

// Every attribute in every step of every type: given where it must not be, left out where it must be.
TEST_F(Support, EachAttributeIsTakenInTheStepsThatAreSaid) {
  std::vector types{QpType::kRc, QpType::kUc, QpType::kUd, QpType::kXrcSend, QpType::kXrcReceive};
  if (may_use_raw_network()) types.push_back(QpType::kRawPacket);
  constexpr std::array kFrom{QpState::kReset,       QpState::kInit,  QpState::kReadyToReceive,
                             QpState::kReadyToSend, QpState::kError, QpState::kSendQueueDrained};
  std::size_t tried = 0;
  for (const QpType type : types) {
    for (const QpState from : kFrom) {
      for (std::size_t number = 0; number < engine::kQpStates; ++number) {
        const auto to = static_cast<QpState>(number);
        const engine::QpEdge& edge = engine::edge_of(type, from, to);
        if (!edge.valid) {
          auto qp = bring_to(type, from);
          EXPECT_EQ(EINVAL, modify(qp.get(), type, from, to)) << name_of(type) << name_of(from) << name_of(to);
          continue;
        }
        for (const AttributeRow& row : verbs::kAttributeRows) {
          if (row.bit == engine::kAttrState) continue;
          auto qp = bring_to(type, from);
          ASSERT_TRUE(qp);
          const bool counts = (verbs::ignored_attributes(static_cast<ibv_qp_type>(type)) & row.bit) == 0;
          const bool good = !counts || ((edge.optional & row.bit) != 0 && row.takes_value);
          EXPECT_EQ(good ? 0 : EINVAL, modify(qp.get(), type, from, to, row.bit))
              << row.name << " of " << name_of(type) << " from " << name_of(from) << " to " << name_of(to);
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(tried, 1'500U);
}

TEST(SupportTable, HasARowForEachAttributeOfTheHeader) {
  AttrMask all = 0;
  for (const AttributeRow& row : verbs::kAttributeRows) {
    EXPECT_EQ(0U, all & row.bit) << row.name;
    all |= row.bit;
  }
  constexpr unsigned kWithoutGap = (1U << 21) - 1;  // IBV_QP_STATE to IBV_QP_DEST_QPN
  EXPECT_EQ(kWithoutGap | IBV_QP_RATE_LIMIT, all);
}

}  // namespace
}  // namespace verbena::abi
