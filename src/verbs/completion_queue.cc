// Completion channels and completion queues: making, resizing, destroying. Polling is in poll.cc.
#include <chrono>
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
constinit Real<ibv_comp_channel*(ibv_context*)> real_create_channel{"ibv_create_comp_channel", "IBVERBS_1.0"};
constinit Real<int(ibv_comp_channel*)> real_destroy_channel{"ibv_destroy_comp_channel", "IBVERBS_1.0"};
constinit Real<ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int)> real_create_cq{"ibv_create_cq", kV11};
constinit Real<int(ibv_cq*, int)> real_resize_cq{"ibv_resize_cq", kV11};
constinit Real<int(ibv_cq*)> real_destroy_cq{"ibv_destroy_cq", kV11};

constexpr std::uint64_t kStampFlags =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr std::uint64_t kKnownWcFlags = IBV_WC_STANDARD_FLAGS | kStampFlags;
constexpr std::uint32_t kKnownInitMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
constexpr std::uint32_t kKnownCreateFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

ibv_comp_channel* create_channel(ibv_context* context) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  auto machine = device::EventChannel::open(device::EventChannel::Form::kCompletion);
  if (!machine) return null_with(machine.error());
  auto* const channel = new VerbsChannel;
  channel->machine = std::move(*machine);
  channel->base = {.context = context, .fd = channel->machine->fd(), .refcnt = 0};
  return &channel->base;
}

int destroy_channel(ibv_comp_channel* channel) noexcept {
  if (!alive(channel->context)) return device::Context::refuse_child();
  ::pthread_mutex_lock(&channel->context->mutex);
  const bool used = channel->refcnt != 0;
  ::pthread_mutex_unlock(&channel->context->mutex);
  if (used) return EBUSY;
  delete &ours(channel);
  return 0;
}

void change_users(ibv_comp_channel* channel, int by) noexcept {
  if (channel == nullptr) return;
  ::pthread_mutex_lock(&channel->context->mutex);
  channel->refcnt += by;
  ::pthread_mutex_unlock(&channel->context->mutex);
}

struct CqWanted {
  std::int64_t entries;
  void* cq_context;
  ibv_comp_channel* channel;
  std::int64_t vector;
  bool single_threaded;
  ibv_pd* parent_domain;
  engine::CompletionQueue::Options options;
};

void fill(VerbsCq& cq, ibv_context* context, const CqWanted& wanted) noexcept {
  cq.base.context = context;
  cq.base.channel = wanted.channel;
  cq.base.cq_context = wanted.cq_context;
  cq.base.handle = cq.machine->handle();
  cq.base.cqe = static_cast<int>(cq.machine->capacity());
  ::pthread_mutex_init(&cq.base.mutex, nullptr);
  ::pthread_cond_init(&cq.base.cond, nullptr);
  cq.single_threaded = wanted.single_threaded;
  set_polling(cq.base);
}

// The vector is checked and changes nothing: a completion wakes whoever waits on the channel.
VerbsCq* create_cq(ibv_context* context, const CqWanted& wanted) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  if (wanted.entries <= 0 || wanted.entries > UINT32_MAX) return null_with(EINVAL);
  if (wanted.vector < 0 || wanted.vector >= context->num_comp_vectors) return null_with(EINVAL);
  if (wanted.channel != nullptr) {
    if (wanted.channel->context != context || wanted.channel->fd != ours(wanted.channel).machine->fd()) {
      return null_with(EINVAL);
    }
  }
  ibv_pd* const parent = wanted.parent_domain;
  if (parent != nullptr && (parent->context != context || !ours(parent).is_parent)) return null_with(EINVAL);
  auto cq = std::make_unique<VerbsCq>();
  auto machine =
      device::CompletionQueue::create(*ours(context).machine, static_cast<std::uint32_t>(wanted.entries),
                                      wanted.channel == nullptr ? nullptr : ours(wanted.channel).machine.get(),
                                      reinterpret_cast<std::uint64_t>(cq.get()), wanted.options);
  if (!machine) return null_with(machine.error());
  cq->machine = std::move(*machine);
  if (parent != nullptr) cq->domain = Hold(ours(parent).holders);
  fill(*cq, context, wanted);
  change_users(wanted.channel, 1);
  return cq.release();
}

int destroy_cq(ibv_cq* cq) noexcept {
  if (!alive(cq->context)) return device::Context::refuse_child();
  if (!names_itself(cq)) return ENOENT;
  VerbsCq& mine = ours(cq);
  if (mine.machine->in_use() || mine.holders.any()) return EBUSY;
  mine.machine.reset();
  wait_for_acknowledgements(cq->mutex, cq->cond, cq->comp_events_completed, mine.completion_events);
  wait_for_acknowledgements(cq->mutex, cq->cond, cq->async_events_completed, mine.async_events);
  change_users(cq->channel, -1);
  ::pthread_cond_destroy(&cq->cond);
  ::pthread_mutex_destroy(&cq->mutex);
  delete &mine;
  return 0;
}

int resize_cq(ibv_cq* cq, int entries) {
  if (!alive(cq->context)) return device::Context::refuse_child();
  if (!names_itself(cq) || entries <= 0) return EINVAL;
  if (const int error = errno_of(ours(cq).machine->resize(static_cast<std::uint32_t>(entries)))) return error;
  cq->cqe = static_cast<int>(ours(cq).machine->capacity());
  return 0;
}

}  // namespace

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) noexcept {
  if (!alive(cq->context)) return device::Context::refuse_child();
  if (!names_itself(cq) || attributes->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  ours(cq).machine->moderate(attributes->moderate.cq_count, std::chrono::microseconds(attributes->moderate.cq_period));
  return 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) noexcept {
  const bool has_flags = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  if ((attributes->wc_flags & ~kKnownWcFlags) != 0 || (attributes->comp_mask & ~kKnownInitMask) != 0 ||
      (has_flags && (attributes->flags & ~kKnownCreateFlags) != 0)) {
    return null_with(EOPNOTSUPP);
  }
  const bool single = has_flags && (attributes->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  const engine::CompletionQueue::Options options{
      .stamped = (attributes->wc_flags & kStampFlags) != 0,
      .ignore_overrun = has_flags && (attributes->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0};
  return contained([&]() -> ibv_cq_ex* {
    const bool has_domain = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
    VerbsCq* const cq =
        create_cq(context, {attributes->cqe, attributes->cq_context, attributes->channel, attributes->comp_vector,
                            single, has_domain ? attributes->parent_domain : nullptr, options});
    return cq == nullptr ? nullptr : &cq->base;
  });
}

VERBENA_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (!is_ours(context)) return real_create_channel.call_or(nullptr, context);
  return contained([=] { return create_channel(context); });
}

VERBENA_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return is_ours(channel) ? destroy_channel(channel) : real_destroy_channel.call_or(EOPNOTSUPP, channel);
}

VERBENA_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                                     int vector) {
  if (!is_ours(context)) return real_create_cq.call_or(nullptr, context, entries, cq_context, channel, vector);
  return contained([=]() -> ibv_cq* {
    VerbsCq* const cq = create_cq(context, {entries, cq_context, channel, vector, false, nullptr, {}});
    return cq == nullptr ? nullptr : cq->plain();
  });
}

VERBENA_EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (!is_ours(cq)) return real_resize_cq.call_or(EOPNOTSUPP, cq, entries);
  return contained([=] { return resize_cq(cq, entries); });
}

VERBENA_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  return is_ours(cq) ? destroy_cq(cq) : real_destroy_cq.call_or(EOPNOTSUPP, cq);
}

}  // namespace verbena::verbs
