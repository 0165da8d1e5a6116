#include "verbs/events.h"

#include <sys/socket.h>

#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/real.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV11 = "IBVERBS_1.1";
constinit Real<int(ibv_comp_channel*, ibv_cq**, void**)> real_get_cq_event{"ibv_get_cq_event", kV11};
constinit Real<void(ibv_cq*, unsigned)> real_ack_cq_events{"ibv_ack_cq_events", kV11};
constinit Real<int(ibv_context*, ibv_async_event*)> real_get_async_event{"ibv_get_async_event", kV11};
constinit Real<void(ibv_async_event*)> real_ack_async_event{"ibv_ack_async_event", kV11};

// What an event is about, which decides what its element is.
enum class Subject { kPort, kCq, kQp, kSrq, kWq };

Subject subject_of(std::uint32_t type) noexcept {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Subject::kCq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Subject::kQp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Subject::kSrq;
    case IBV_EVENT_WQ_FATAL:
      return Subject::kWq;
    default:
      return Subject::kPort;
  }
}

template <class Object>
Object* element_of(const device::EventChannel::Record& record) noexcept {
  return reinterpret_cast<Object*>(record.element);
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& condition, std::uint32_t& acknowledged,
                 std::uint32_t count) noexcept {
  ::pthread_mutex_lock(&mutex);
  acknowledged += count;
  ::pthread_cond_signal(&condition);
  ::pthread_mutex_unlock(&mutex);
}

bool is_about_ours(const ibv_async_event& event) noexcept {
  switch (subject_of(event.event_type)) {
    case Subject::kCq:
      return is_ours(event.element.cq);
    case Subject::kQp:
      return is_ours(event.element.qp);
    case Subject::kSrq:
      return is_ours(event.element.srq);
    case Subject::kWq:
    case Subject::kPort:
      return false;
  }
  return false;
}

void acknowledge_ours(const ibv_async_event& event) noexcept {
  switch (subject_of(event.event_type)) {
    case Subject::kCq: {
      ibv_cq& cq = *event.element.cq;
      return acknowledge(cq.mutex, cq.cond, cq.async_events_completed, 1);
    }
    case Subject::kQp: {
      ibv_qp& qp = *event.element.qp;
      return acknowledge(qp.mutex, qp.cond, qp.events_completed, 1);
    }
    case Subject::kSrq: {
      ibv_srq& srq = *event.element.srq;
      return acknowledge(srq.mutex, srq.cond, srq.events_completed, 1);
    }
    case Subject::kWq:
    case Subject::kPort:
      return;
  }
}

// Waits and takes. A thread may be cancelled while it waits, which unwinds through here and so must not meet a
// noexcept; what follows is done or not done, never half.
int wait_and_take(device::EventChannel& channel, device::EventChannel::Record& record,
                  void (*taken)(const device::EventChannel::Record&)) {
  std::byte probe{};
  if (::recv(channel.fd(), &probe, sizeof probe, MSG_PEEK) < 0) return errno;
  int before = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const int error = channel.take(record, taken);
  ::pthread_setcancelstate(before, nullptr);
  return error;
}

int take_completion_event(VerbsChannel& channel, ibv_cq** cq, void** cq_context) {
  device::EventChannel::Record record;
  const int error = wait_and_take(*channel.machine, record, count_completion_event);
  if (error != 0) {
    errno = error;
    return -1;
  }
  *cq = element_of<ibv_cq>(record);
  *cq_context = (*cq)->cq_context;
  return 0;
}

int take_async_event(VerbsContext& context, ibv_async_event& event) {
  device::EventChannel::Record record;
  const int error = wait_and_take(context.machine->async_events(), record, count_async_event);
  if (error != 0) {
    errno = error;
    return -1;
  }
  event = {};
  event.event_type = static_cast<ibv_event_type>(record.type);
  if (subject_of(record.type) == Subject::kPort) {
    event.element.port_num = static_cast<int>(record.element);
  } else {
    event.element.cq = element_of<ibv_cq>(record);  // of the same place in the union, whatever it is
  }
  return 0;
}

}  // namespace

void count_completion_event(const device::EventChannel::Record& record) noexcept {
  // Relaxed: the channel orders it before the purge that ibv_destroy_cq() reads it after.
  ours(element_of<ibv_cq>(record)).completion_events.fetch_add(1, std::memory_order_relaxed);
}

void count_async_event(const device::EventChannel::Record& record) noexcept {
  switch (subject_of(record.type)) {
    case Subject::kCq:
      ours(element_of<ibv_cq>(record)).async_events.fetch_add(1, std::memory_order_relaxed);
      return;
    case Subject::kQp:
      ours(element_of<ibv_qp>(record)).async_events.fetch_add(1, std::memory_order_relaxed);
      return;
    case Subject::kSrq:
      ours(element_of<ibv_srq>(record)).async_events.fetch_add(1, std::memory_order_relaxed);
      return;
    case Subject::kWq:
    case Subject::kPort:
      return;
  }
}

void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& condition, const std::uint32_t& acknowledged,
                               const EventCount& taken) noexcept {
  ::pthread_mutex_lock(&mutex);
  // More were acknowledged than taken where a program read the descriptor itself.
  while (static_cast<std::int32_t>(taken.load(std::memory_order_relaxed) - acknowledged) > 0) {
    ::pthread_cond_wait(&condition, &mutex);
  }
  ::pthread_mutex_unlock(&mutex);
}

VERBENA_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  if (!is_ours(channel)) return real_get_cq_event.call_or(-1, channel, cq, cq_context);
  if (!alive(channel->context)) {
    errno = device::Context::refuse_child();
    return -1;
  }
  return take_completion_event(ours(channel), cq, cq_context);
}

VERBENA_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  if (!is_ours(cq)) return real_ack_cq_events.call(cq, count);
  acknowledge(cq->mutex, cq->cond, cq->comp_events_completed, count);
}

VERBENA_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (!is_ours(context)) return real_get_async_event.call_or(-1, context, event);
  if (!alive(context)) {
    errno = device::Context::refuse_child();
    return -1;
  }
  return take_async_event(ours(context), *event);
}

VERBENA_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  if (subject_of(event->event_type) == Subject::kPort) return;  // nobody waits for these
  if (!is_about_ours(*event)) return real_ack_async_event.call(event);
  acknowledge_ours(*event);
}

}  // namespace verbena::verbs
