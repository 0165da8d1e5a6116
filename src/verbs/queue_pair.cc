// Queue pairs: making, changing, asking, destroying; multicast groups. Posting is in post.cc and extended_send.cc.
#include <new>
#include <optional>

#include "verbs/address.h"
#include "verbs/attributes.h"
#include "verbs/devices.h"
#include "verbs/events.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/real.h"
#include "verbs/refusal.h"
#include "verbs/support.h"

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
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint32_t kNeededToOpen = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
constexpr std::uint64_t kDatagramSendOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kFrameSendOps = IBV_QP_EX_WITH_SEND;
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
      return kFrameSendOps;
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

// EINVAL for a completion or receive queue that is not of this context. What an XRC send queue pair would receive with
// is not looked at.
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

// What every queue pair has.
void fill(VerbsQp& qp, ibv_context* context, void* qp_context, ibv_qp_type type) noexcept {
  ibv_qp& plain = *qp.plain();
  plain.context = context;
  plain.qp_context = qp_context;
  plain.handle = qp.machine->handle();
  plain.qp_num = qp.machine->qpn().value();
  plain.state = IBV_QPS_RESET;
  plain.qp_type = type;
  ::pthread_mutex_init(&plain.mutex, nullptr);
  ::pthread_cond_init(&plain.cond, nullptr);
}

std::uint64_t element_of(const VerbsQp& qp) noexcept {
  return reinterpret_cast<std::uint64_t>(&qp);
}

VerbsQp* create_qp(ibv_pd* pd, ibv_qp_init_attr& wanted) {
  ibv_qp_init_attr attributes = wanted;
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd)) return null_with(EINVAL);
  if (attributes.qp_type == IBV_QPT_DRIVER) return null_with(EOPNOTSUPP);
  const auto type = to_type(attributes.qp_type);
  if (!type) return null_with(EINVAL);
  if (*type == engine::QpType::kXrcSend) {  // receives nothing
    attributes.recv_cq = nullptr;
    attributes.srq = nullptr;
  }
  if (const int error = check_parts(pd, attributes)) return null_with(error);
  auto qp = std::make_unique<VerbsQp>();
  auto machine = device::QueuePair::create(*ours(pd).machine, to_init(attributes, *type, element_of(*qp)));
  if (!machine) return null_with(machine.error());
  qp->machine = std::move(*machine);
  qp->domain = Hold(ours(pd).holders);
  wanted.cap = to_verbs(qp->machine->capabilities());
  fill(*qp, pd->context, attributes.qp_context, attributes.qp_type);
  ibv_qp& plain = *qp->plain();
  plain.pd = pd;
  plain.send_cq = attributes.send_cq;
  plain.recv_cq = attributes.recv_cq;
  plain.srq = attributes.srq;
  return qp.release();
}

// One more handle of an XRC receive queue pair, which is not of a protection domain and has no queues.
ibv_qp* hand_out(std::unique_ptr<VerbsQp> qp, ibv_xrcd* xrcd, void* qp_context) noexcept {
  qp->domain = Hold(ours(xrcd).holders);
  qp->xrcd = xrcd;
  fill(*qp, xrcd->context, qp_context, IBV_QPT_XRC_RECV);
  return qp.release()->plain();
}

ibv_qp* create_xrc_receive(ibv_xrcd* xrcd, ibv_qp_init_attr_ex& attributes) {
  if (!alive(xrcd->context)) return null_with(device::Context::refuse_child());
  auto qp = std::make_unique<VerbsQp>();
  auto machine =
      device::QueuePair::create_xrc_receive(ours(xrcd).machine, *ours(xrcd->context).machine, element_of(*qp));
  if (!machine) return null_with(machine.error());
  qp->machine = std::move(*machine);
  attributes.cap = to_verbs(qp->machine->capabilities());
  return hand_out(std::move(qp), xrcd, attributes.qp_context);
}

ibv_qp* open_xrc_receive(ibv_xrcd* xrcd, Qpn number, void* qp_context) {
  if (!alive(xrcd->context)) return null_with(device::Context::refuse_child());
  auto qp = std::make_unique<VerbsQp>();
  qp->machine = ours(xrcd).machine->queue_pair(number);
  if (qp->machine == nullptr) return null_with(EINVAL);
  qp->machine->add_listener(*ours(xrcd->context).machine, element_of(*qp));
  const ibv_qp_state state = static_cast<ibv_qp_state>(qp->machine->state());
  ibv_qp* const opened = hand_out(std::move(qp), xrcd, qp_context);
  opened->state = state;
  return opened;
}

// EOPNOTSUPP for what is asked beyond a plain queue pair and the sends that its type has.
int check_extensions(const ibv_qp_init_attr_ex& attributes) noexcept {
  const std::uint32_t mask = attributes.comp_mask;
  if ((mask & ~kKnownInitMask) != 0) return EOPNOTSUPP;
  if ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attributes.create_flags != 0) return EOPNOTSUPP;
  const std::uint64_t known = send_ops_of(attributes.qp_type);
  if ((mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && (attributes.send_ops_flags & ~known) != 0) return EOPNOTSUPP;
  return 0;
}

int modify_qp(ibv_qp* qp, const ibv_qp_attr& attributes, unsigned given) {
  const unsigned mask = given & ~ignored_attributes(qp->qp_type);
  if (!alive(qp->context)) return device::Context::refuse_child();
  if (!names_itself(qp)) return EINVAL;
  engine::QpAttributes converted;
  if (!to_engine(attributes, mask, converted)) return EINVAL;
  if (const Status status = ours(qp).machine->modify(converted, mask); !status) {
    // A wrong address is what people look for longest.
    return (mask & IBV_QP_AV) != 0 ? device::report_once(status.error()) : device::report(status.error());
  }
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
  mine.machine->remove_listener(element_of(mine));
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
  if (attributes->qp_type == IBV_QPT_XRC_RECV) {
    const bool given = (attributes->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attributes->xrcd != nullptr;
    if (!given || attributes->xrcd->context != context) return null_with(EINVAL);
    return contained([=] { return create_xrc_receive(attributes->xrcd, *attributes); });
  }
  const bool given = (attributes->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attributes->pd != nullptr;
  if (!given || attributes->pd->context != context) return null_with(EINVAL);
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

// Of another process none can be opened: each has the device in itself.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes) noexcept {
  const std::uint32_t mask = attributes->comp_mask;
  if (mask >= IBV_QP_OPEN_ATTR_RESERVED) return null_with(EOPNOTSUPP);
  if ((mask & kNeededToOpen) != kNeededToOpen || attributes->qp_type != IBV_QPT_XRC_RECV) return null_with(EINVAL);
  if (attributes->xrcd == nullptr || attributes->xrcd->context != context) return null_with(EINVAL);
  void* const qp_context = (mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attributes->qp_context : nullptr;
  return contained([=] { return open_xrc_receive(attributes->xrcd, Qpn(attributes->qp_num), qp_context); });
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
