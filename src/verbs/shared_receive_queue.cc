// Shared receive queues.
#include <new>

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
constinit Real<ibv_srq*(ibv_pd*, ibv_srq_init_attr*)> real_create_srq{"ibv_create_srq", kV11};
constinit Real<int(ibv_srq*, ibv_srq_attr*, int)> real_modify_srq{"ibv_modify_srq", kV11};
constinit Real<int(ibv_srq*, ibv_srq_attr*)> real_query_srq{"ibv_query_srq", kV11};
constinit Real<int(ibv_srq*)> real_destroy_srq{"ibv_destroy_srq", kV11};

constexpr int kKnownMask = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;

// Of the XRC kind: where it belongs, and where its completions go.
struct XrcParts {
  ibv_xrcd* domain = nullptr;
  ibv_cq* completions = nullptr;
};

ibv_srq* create_srq(ibv_pd* pd, void* srq_context, ibv_srq_attr& attributes, XrcParts xrc = {}) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd)) return null_with(EINVAL);
  auto srq = std::make_unique<VerbsSrq>();
  device::XrcPart parts;
  if (xrc.domain != nullptr) parts = {ours(xrc.domain).machine, ours(xrc.completions).machine.get()};
  auto machine = device::SharedReceiveQueue::create(
      *ours(pd).machine, {.max_wr = attributes.max_wr, .max_sge = attributes.max_sge, .limit = 0},
      reinterpret_cast<std::uint64_t>(srq.get()), parts);
  if (!machine) return null_with(machine.error());
  srq->machine = std::move(*machine);
  srq->domain = Hold(ours(pd).holders);
  if (xrc.domain != nullptr) {
    srq->xrc_domain = Hold(ours(xrc.domain).holders);
    srq->completions = Hold(ours(xrc.completions).holders);
  }
  const auto granted = srq->machine->attributes();
  attributes.max_wr = granted.max_wr;
  attributes.max_sge = granted.max_sge;
  srq->base.context = pd->context;
  srq->base.srq_context = srq_context;
  srq->base.pd = pd;
  srq->base.handle = srq->machine->handle();
  ::pthread_mutex_init(&srq->base.mutex, nullptr);
  ::pthread_cond_init(&srq->base.cond, nullptr);
  return &srq.release()->base;
}

int modify_srq(ibv_srq* srq, const ibv_srq_attr& attributes, int mask) {
  if (!alive(srq->context)) return device::Context::refuse_child();
  if (!names_itself(srq) || (mask & ~kKnownMask) != 0) return EINVAL;
  std::optional<std::uint32_t> max_wr;
  std::optional<std::uint32_t> limit;
  if ((mask & IBV_SRQ_MAX_WR) != 0) max_wr = attributes.max_wr;
  if ((mask & IBV_SRQ_LIMIT) != 0) limit = attributes.srq_limit;
  return errno_of(ours(srq).machine->modify(max_wr, limit));
}

int query_srq(ibv_srq* srq, ibv_srq_attr& attributes) noexcept {
  if (!alive(srq->context)) return device::Context::refuse_child();
  if (!names_itself(srq)) return EINVAL;
  const auto current = ours(srq).machine->attributes();
  attributes = {.max_wr = current.max_wr, .max_sge = current.max_sge, .srq_limit = current.limit};
  return 0;
}

int destroy_srq(ibv_srq* srq) noexcept {
  if (!alive(srq->context)) return device::Context::refuse_child();
  if (!names_itself(srq)) return ENOENT;
  VerbsSrq& mine = ours(srq);
  if (mine.machine->in_use()) return EBUSY;
  mine.machine.reset();
  wait_for_acknowledgements(srq->mutex, srq->cond, srq->events_completed, mine.async_events);
  ::pthread_cond_destroy(&srq->cond);
  ::pthread_mutex_destroy(&srq->mutex);
  delete &mine;
  return 0;
}

}  // namespace

// The plain kind with a PD goes to ibv_create_srq() already in verbs.h; what comes here is XRC, tag matching, or a mask
// without a PD.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) noexcept {
  constexpr std::uint32_t kXrcMask = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const std::uint32_t mask = attributes->comp_mask;
  const ibv_srq_type type = (mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 ? IBV_SRQT_BASIC : attributes->srq_type;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return null_with(EOPNOTSUPP);
  if ((mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd->context != context) return null_with(EINVAL);
  XrcParts xrc;
  if (type == IBV_SRQT_XRC) {
    xrc = {attributes->xrcd, attributes->cq};
    const bool given = (mask & kXrcMask) == kXrcMask && xrc.domain != nullptr && xrc.completions != nullptr;
    if (!given || xrc.domain->context != context || !usable_in(xrc.completions, context)) return null_with(EINVAL);
  }
  return contained([=] { return create_srq(attributes->pd, attributes->srq_context, attributes->attr, xrc); });
}

// Only one of XRC has a number.
int get_srq_number(ibv_srq* srq, std::uint32_t* number) noexcept {
  if (!alive(srq->context)) return device::Context::refuse_child();
  if (!names_itself(srq) || !ours(srq).machine->is_xrc()) return EINVAL;
  *number = ours(srq).machine->number().value();
  return 0;
}

VERBENA_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (!is_ours(pd)) return real_create_srq.call_or(nullptr, pd, attributes);
  return contained([=] { return create_srq(pd, attributes->srq_context, attributes->attr); });
}

VERBENA_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if (!is_ours(srq)) return real_modify_srq.call_or(EOPNOTSUPP, srq, attributes, mask);
  return contained([=] { return modify_srq(srq, *attributes, mask); });
}

VERBENA_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  return is_ours(srq) ? query_srq(srq, *attributes) : real_query_srq.call_or(EOPNOTSUPP, srq, attributes);
}

VERBENA_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  return is_ours(srq) ? destroy_srq(srq) : real_destroy_srq.call_or(EOPNOTSUPP, srq);
}

}  // namespace verbena::verbs
