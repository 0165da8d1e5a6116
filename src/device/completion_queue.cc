#include "device/completion_queue.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "device/async_event.h"
#include "device/clock.h"
#include "device/log.h"
#include "device/put_off_events.h"
#include "device/queue_pair.h"

namespace verbena::device {

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::create(Context& context, std::uint32_t capacity,
                                                                 EventChannel* channel, std::uint64_t element,
                                                                 engine::CompletionQueue::Options options) {
  if (capacity == 0 || capacity > context.limits().max_cqe) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("{}: a completion queue of {} entries; 1 to {} are possible", context.device().name(),
                               capacity, context.limits().max_cqe),
                   EINVAL);
  }
  if (auto entered = context.enter(ObjectKind::kCompletionQueue); !entered) return tl::make_unexpected(entered.error());
  try {
    return std::unique_ptr<CompletionQueue>(new CompletionQueue(context, capacity, channel, element, options));
  } catch (const std::bad_alloc&) {
    context.leave(ObjectKind::kCompletionQueue);
    return failure(ErrorCode::kExhausted, fmt::format("no memory for a completion queue of {} entries", capacity),
                   ENOMEM);
  }
}

CompletionQueue::CompletionQueue(Context& context, std::uint32_t capacity, EventChannel* channel, std::uint64_t element,
                                 engine::CompletionQueue::Options options)
    : context_(context.shared_from_this()),
      channel_(channel),
      element_(element),
      handle_(context.next_handle()),
      stamped_(options.stamped),
      queue_(capacity, options) {}

CompletionQueue::~CompletionQueue() {
  context_->leave(ObjectKind::kCompletionQueue);
  if (!context_->alive()) return;
  context_->runtime().forget(*this);
  purge_events();
}

std::uint32_t CompletionQueue::capacity() const noexcept {
  const std::lock_guard guard(lock_);
  return queue_.capacity();
}

// Two tries: what is there, then what comes in by looking for it.
template <class Take>
int CompletionQueue::take(std::size_t wanted, Take take) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    // Acquire: partner of the release in push(). A stale false costs one more poll of the caller's.
    if (maybe_full_.load(std::memory_order_acquire)) {
      const std::lock_guard guard(lock_);
      const std::size_t count = take();
      if (queue_.empty() && !queue_.overrun()) maybe_full_.store(false, std::memory_order_relaxed);
      if (count > 0) return static_cast<int>(count);
      if (queue_.overrun()) return -EIO;
    }
    if (attempt == 0) {
      if (!context_->alive()) return -Context::refuse_child();
      context_->runtime().on_empty_poll(wanted);
    }
  }
  return 0;
}

int CompletionQueue::poll(std::span<Completion> into) noexcept {
  return take(into.size(), [this, into] { return queue_.poll(into); });
}

int CompletionQueue::poll_one(Completion& completion, std::uint64_t& stamp) noexcept {
  return take(1, [&] { return std::size_t{queue_.poll_one(completion, stamp)}; });
}

void CompletionQueue::moderate(std::uint16_t count, Duration period) noexcept {
  const std::lock_guard guard(lock_);
  period_.store(period.count(), std::memory_order_relaxed);
  queue_.moderate(count, period != Duration{0});
}

void CompletionQueue::on_period_over() noexcept {
  bool notify = false;
  {
    const std::lock_guard guard(lock_);
    notify = queue_.on_period_over();
  }
  if (notify && channel_ != nullptr) channel_->push({element_, 0});
}

void CompletionQueue::arm(engine::CompletionQueue::Arm arm) noexcept {
  {
    const std::lock_guard guard(lock_);
    queue_.arm(arm);
  }
  context_->runtime().on_arm();
}

Status CompletionQueue::resize(std::uint32_t capacity) {
  if (capacity > context_->limits().max_cqe) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("a completion queue of {} entries; 1 to {} are possible", capacity, context_->limits().max_cqe),
        EINVAL);
  }
  const std::lock_guard guard(lock_);
  return queue_.resize(capacity);
}

void CompletionQueue::purge_events() noexcept {
  if (channel_ != nullptr) channel_->purge(element_);
  context_->async_events().purge(element_);
}

bool CompletionQueue::push(const Completion& completion, engine::Place place) noexcept {
  const std::uint64_t stamp = stamped_ ? static_cast<std::uint64_t>(now().ns) : 0;
  engine::CompletionQueue::Pushed pushed;
  bool first_loss = false;
  {
    const std::lock_guard guard(lock_);
    const bool overrun_before = queue_.overrun();
    pushed = queue_.push(completion, place, stamp);
    first_loss = !overrun_before && queue_.overrun();
    maybe_full_.store(true, std::memory_order_release);
  }
  if (pushed.notify && channel_ != nullptr && !PutOffEvents::takes(*this)) channel_->push({element_, 0});
  if (pushed.delayed) [[unlikely]]
    context_->runtime().delay_event(*this, now() + Duration(period_.load(std::memory_order_relaxed)));
  if (first_loss) raise_overrun();
  return pushed.stored;
}

bool CompletionQueue::overrun() const noexcept {
  const std::lock_guard guard(lock_);
  return queue_.overrun();
}

void CompletionQueue::raise_overrun() noexcept {
  log(Severity::kError,
      fmt::format("{}: a completion queue of {} entries was overrun; its queue pairs go to the error state. "
                  "Destroy them and it, and make it larger or poll more",
                  context_->device().name(), capacity()));
  context_->async_events().push({element_, static_cast<std::uint32_t>(AsyncEvent::kCqError)});
  context_->runtime().report_overrun(*this);
}

void CompletionQueue::attach(QueuePair& queue_pair) {
  const std::lock_guard guard(attached_mutex_);
  attached_.push_back(&queue_pair);
  users_.fetch_add(1, std::memory_order_relaxed);
}

void CompletionQueue::forget(QueuePair& queue_pair) noexcept {
  const std::lock_guard guard(attached_mutex_);
  std::erase(attached_, &queue_pair);
}

void CompletionQueue::remove_of(Qpn qpn) noexcept {
  const std::lock_guard guard(lock_);
  queue_.remove_of(qpn);
}

void CompletionQueue::fail_queue_pairs() noexcept {
  const std::lock_guard guard(attached_mutex_);
  for (auto* queue_pair : attached_) queue_pair->fail();
}

}  // namespace verbena::device
