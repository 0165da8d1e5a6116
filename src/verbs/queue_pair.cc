// Queue pairs: making, changing, asking, destroying; multicast groups. Posting is in post.cc and extended_send.cc.
#include <new>
#include <optional>

#include "device/privilege.h"
#include "verbs/address.h"
#include "verbs/attributes.h"
#include "verbs/devices.h"
#include "verbs/events.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/real.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV11 = "IBVERBS_1.1";
constinit Real<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)> real_create_qp{"ibv_create_qp", kV11};
constinit Real<ibv_qp_ex*(ibv_qp*)> real_qp_to_qp_ex{"ibv_qp_to_qp_ex", "IBVERBS_1.6"};
constinit Real<int(ibv_qp*, ibv_qp_attr*, int)> real_modify_qp{"ibv_modify_qp", kV11};
constinit Real<int(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*)> real_query_qp{"ibv_query_qp", kV11};
constinit Real<int(ibv_qp*)> real_destroy_qp{"ibv_destroy_qp", kV11};
constinit Real<int(ibv_qp*, const ibv_gid*, std::uint16_t)> real_attach_mcast{"ibv_attach_mcast", kV11};
constinit Real<int(ibv_qp*, const ibv_gid*, std::uint16_t)> real_detach_mcast{"ibv_detach_mcast", kV11};
constinit Real<int(ibv_qp*, ibv_wr_opcode, std::uint32_t)> real_data_in_order{"ibv_query_qp_data_in_order",
                                                                              "IBVERBS_1.14"};
constinit Real<int(ibv_qp*, ibv_ece*)> real_query_ece{"ibv_query_ece", "IBVERBS_1.10"};
constinit Real<int(ibv_qp*, ibv_ece*)> real_set_ece{"ibv_set_ece", "IBVERBS_1.10"};

constexpr std::uint32_t kKnownInitMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint64_t kDatagramSendOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUnreliableSendOps =
    kDatagramSendOps | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kReliableSendOps = kUnreliableSendOps | IBV_QP_EX_WITH_RDMA_READ |
                                           IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                           IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_SEND_WITH_INV |
                                           IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;

std::uint64_t send_ops_of(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_UD:
      return kDatagramSendOps;
    case IBV_QPT_UC:
      return kUnreliableSendOps;
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
      return kReliableSendOps;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER:
      break;
  }
  return 0;
}

std::optional<engine::QpType> to_type(ibv_qp_type type) noexcept {
  for (const engine::QpType known : engine::kQpTypes) {
    if (static_cast<int>(known) == static_cast<int>(type)) return known;
  }
  return std::nullopt;
}

// EINVAL for a completion or receive queue that is not of this context.
int check_parts(const ibv_pd* pd, const ibv_qp_init_attr& attributes) noexcept {
  const ibv_context* const context = pd->context;
  const bool fit = usable_in(attributes.send_cq, context) && usable_in(attributes.recv_cq, context) &&
                   usable_in(attributes.srq, context);
  return fit ? 0 : EINVAL;
}

device::QpInit to_init(const ibv_qp_init_attr& attributes, engine::QpType type, std::uint64_t element) noexcept {
  return {.type = type,
          .send_queue = attributes.send_cq == nullptr ? nullptr : ours(attributes.send_cq).machine.get(),
          .receive_queue = attributes.recv_cq == nullptr ? nullptr : ours(attributes.recv_cq).machine.get(),
          .shared_receives = attributes.srq == nullptr ? nullptr : ours(attributes.srq).machine.get(),
          .capabilities = to_engine(attributes.cap),
          .signal_all = attributes.sq_sig_all != 0,
          .element = element};
}

void fill(VerbsQp& qp, ibv_pd* pd, const ibv_qp_init_attr& attributes) noexcept {
  ibv_qp& plain = *qp.plain();
  plain.context = pd->context;
  plain.qp_context = attributes.qp_context;
  plain.pd = pd;
  plain.send_cq = attributes.send_cq;
  plain.recv_cq = attributes.recv_cq;
  plain.srq = attributes.srq;
  plain.handle = qp.machine->handle();
  plain.qp_num = qp.machine->qpn().value();
  plain.state = IBV_QPS_RESET;
  plain.qp_type = attributes.qp_type;
  ::pthread_mutex_init(&plain.mutex, nullptr);
  ::pthread_cond_init(&plain.cond, nullptr);
}

VerbsQp* create_qp(ibv_pd* pd, ibv_qp_init_attr& attributes) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd)) return null_with(EINVAL);
  if (const int error = check_parts(pd, attributes)) return null_with(error);
  if (attributes.qp_type == IBV_QPT_DRIVER) return null_with(EOPNOTSUPP);
  if (attributes.qp_type == IBV_QPT_RAW_PACKET) return null_with(device::may_use_raw_network() ? EOPNOTSUPP : EPERM);
  const auto type = to_type(attributes.qp_type);
  if (!type) return null_with(EINVAL);
  auto qp = std::make_unique<VerbsQp>();
  auto machine = device::QueuePair::create(*ours(pd).machine,
                                           to_init(attributes, *type, reinterpret_cast<std::uint64_t>(qp.get())));
  if (!machine) return null_with(machine.error());
  qp->machine = std::move(*machine);
  qp->domain = Hold(ours(pd).holders);
  attributes.cap = to_verbs(qp->machine->capabilities());
  fill(*qp, pd, attributes);
  return qp.release();
}

// EOPNOTSUPP for what is asked beyond a plain queue pair and the sends that its type has.
int check_extensions(const ibv_qp_init_attr_ex& attributes) noexcept {
  const std::uint32_t mask = attributes.comp_mask;
  if ((mask & ~kKnownInitMask) != 0) return EOPNOTSUPP;
  if ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attributes.create_flags != 0) return EOPNOTSUPP;
  if ((mask & IBV_QP_INIT_ATTR_PD) == 0) return EINVAL;
  const std::uint64_t known = send_ops_of(attributes.qp_type);
  if ((mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && (attributes.send_ops_flags & ~known) != 0) return EOPNOTSUPP;
  return 0;
}

int modify_qp(ibv_qp* qp, const ibv_qp_attr& attributes, unsigned mask) {
  if (!alive(qp->context)) return device::Context::refuse_child();
  if (!names_itself(qp)) return EINVAL;
  engine::QpAttributes converted;
  if (!to_engine(attributes, mask, converted)) return EINVAL;
  if (const int error = errno_of(ours(qp).machine->modify(converted, mask))) return error;
  if ((mask & IBV_QP_STATE) != 0) qp->state = attributes.qp_state;
  return 0;
}

int query_qp(ibv_qp* qp, ibv_qp_attr& attributes, ibv_qp_init_attr& init) noexcept {
  if (!alive(qp->context)) return device::Context::refuse_child();
  if (!names_itself(qp)) return EINVAL;
  attributes = to_verbs(ours(qp).machine->query());
  init = {.qp_context = qp->qp_context,
          .send_cq = qp->send_cq,
          .recv_cq = qp->recv_cq,
          .srq = qp->srq,
          .cap = attributes.cap,
          .qp_type = qp->qp_type,
          .sq_sig_all = ours(qp).machine->signal_all() ? 1 : 0};
  qp->state = attributes.qp_state;
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  if (!alive(qp->context)) return device::Context::refuse_child();
  if (!names_itself(qp)) return ENOENT;
  VerbsQp& mine = ours(qp);
  if (mine.machine->in_use()) return EBUSY;
  mine.machine.reset();
  wait_for_acknowledgements(qp->mutex, qp->cond, qp->events_completed, mine.async_events);
  ::pthread_cond_destroy(&qp->cond);
  ::pthread_mutex_destroy(&qp->mutex);
  delete &mine;
  return 0;
}

int change_group(ibv_qp* qp, const ibv_gid& gid, std::uint16_t lid, bool attach) {
  if (!alive(qp->context)) return device::Context::refuse_child();
  if (!names_itself(qp) || qp->qp_type != IBV_QPT_UD) return EINVAL;
  const Gid group = to_gid(gid);
  return errno_of(attach ? ours(qp).machine->attach(group, lid) : ours(qp).machine->detach(group, lid));
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) noexcept {
  if (const int error = check_extensions(*attributes)) return null_with(error);
  if (attributes->pd == nullptr || attributes->pd->context != context) return null_with(EINVAL);
  return contained([=]() -> ibv_qp* {
    // Both structures begin alike.
    VerbsQp* const qp = create_qp(attributes->pd, *reinterpret_cast<ibv_qp_init_attr*>(attributes));
    if (qp == nullptr) return nullptr;
    if ((attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
      qp->extended = kHasExtendedCalls;
      qp->send_ops = attributes->send_ops_flags;
      set_extended_send(qp->base);
    }
    return qp->plain();
  });
}

VERBENA_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (!is_ours(pd)) return real_create_qp.call_or(nullptr, pd, attributes);
  return contained([=]() -> ibv_qp* {
    VerbsQp* const qp = create_qp(pd, *attributes);
    return qp == nullptr ? nullptr : qp->plain();
  });
}

VERBENA_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (!is_ours(qp)) return real_qp_to_qp_ex.call_or(nullptr, qp);
  return ours(qp).extended == kHasExtendedCalls ? &ours(qp).base : nullptr;
}

VERBENA_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (!is_ours(qp)) return real_modify_qp.call_or(EOPNOTSUPP, qp, attributes, mask);
  return contained([=] { return modify_qp(qp, *attributes, static_cast<unsigned>(mask)); });
}

VERBENA_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init) {
  if (!is_ours(qp)) return real_query_qp.call_or(EOPNOTSUPP, qp, attributes, mask, init);
  return query_qp(qp, *attributes, *init);
}

VERBENA_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  if (!is_ours(qp)) return real_destroy_qp.call_or(EOPNOTSUPP, qp);
  return contained([=] { return destroy_qp(qp); });
}

VERBENA_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (!is_ours(qp)) return real_attach_mcast.call_or(EOPNOTSUPP, qp, gid, lid);
  return contained([=] { return change_group(qp, *gid, lid, true); });
}

VERBENA_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (!is_ours(qp)) return real_detach_mcast.call_or(EOPNOTSUPP, qp, gid, lid);
  return contained([=] { return change_group(qp, *gid, lid, false); });
}

VERBENA_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  return is_ours(qp) ? 0 : real_data_in_order.call_or(0, qp, opcode, flags);
}

VERBENA_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  return is_ours(qp) ? EOPNOTSUPP : real_query_ece.call_or(EOPNOTSUPP, qp, ece);
}

VERBENA_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  return is_ours(qp) ? EOPNOTSUPP : real_set_ece.call_or(EOPNOTSUPP, qp, ece);
}

}  // namespace verbena::verbs
