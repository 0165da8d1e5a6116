#include "device/shared_receive_queue.h"

#include <cerrno>
#include <mutex>
#include <new>

#include <fmt/format.h>

#include "device/async_event.h"
#include "device/rcu.h"

namespace verbena::device {
namespace {

std::uint64_t next_identity() noexcept {
  static std::atomic<std::uint64_t> last{0};  // relaxed: it only counts
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Result<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(ProtectionDomain& domain,
                                                                       const Attributes& wanted, std::uint64_t element,
                                                                       const XrcPart& xrc) {
  Context& context = domain.context();
  const auto& limits = context.limits();
  if (wanted.max_wr == 0 || wanted.max_wr > limits.max_srq_wr || wanted.max_sge > limits.max_srq_sge) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a shared receive queue of {} requests with {} SGEs each; 1 to {} with up to {} are "
                    "possible",
                    context.device().name(), wanted.max_wr, wanted.max_sge, limits.max_srq_wr, limits.max_srq_sge),
        EINVAL);
  }
  if (auto entered = context.enter(ObjectKind::kSharedReceiveQueue); !entered) {
    return tl::make_unexpected(entered.error());
  }
  try {
    std::unique_ptr<SharedReceiveQueue> made(new SharedReceiveQueue(domain, wanted, element, xrc));
    if (auto published = made->publish(); !published) return tl::make_unexpected(published.error());
    return made;
  } catch (const std::bad_alloc&) {
    context.leave(ObjectKind::kSharedReceiveQueue);
    return failure(ErrorCode::kExhausted, fmt::format("no memory for {} shared receives", wanted.max_wr), ENOMEM);
  }
}

SharedReceiveQueue::SharedReceiveQueue(ProtectionDomain& domain, const Attributes& wanted, std::uint64_t element,
                                       const XrcPart& xrc)
    : context_(domain.context().shared_from_this()),
      domain_(domain),
      element_(element),
      handle_(context_->next_handle()),
      xrc_(xrc),
      identity_(next_identity()),
      queue_(wanted.max_wr, wanted.max_sge == 0 ? 1 : wanted.max_sge) {
  domain.engine().enter(engine::Resident::kSharedReceiveQueue);
}

Status SharedReceiveQueue::publish() {
  if (!is_xrc()) return {};
  auto& table = context_->runtime().shared_receive_queues();
  auto number = table.reserve();
  if (!number) return tl::make_unexpected(number.error());
  number_ = *number;
  table.publish(number_, *this);
  published_ = true;
  return {};
}

SharedReceiveQueue::~SharedReceiveQueue() {
  if (published_ && context_->alive()) {
    auto& table = context_->runtime().shared_receive_queues();
    table.unpublish(number_);
    wait_for_readers();  // packets on their way into it
    table.release(number_);
  }
  domain_.engine().leave(engine::Resident::kSharedReceiveQueue);
  context_->leave(ObjectKind::kSharedReceiveQueue);
  if (context_->alive()) purge_events();
}

SharedReceiveQueue::Attributes SharedReceiveQueue::attributes() const noexcept {
  const std::lock_guard guard(lock_);
  return {queue_.capacity(), queue_.max_sge(), queue_.limit()};
}

Status SharedReceiveQueue::modify(std::optional<std::uint32_t> max_wr, std::optional<std::uint32_t> limit) {
  if (max_wr && *max_wr > context_->limits().max_srq_wr) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("a shared receive queue of {} requests; up to {} are possible", *max_wr,
                               context_->limits().max_srq_wr),
                   EINVAL);
  }
  const std::lock_guard guard(lock_);
  if (max_wr) {
    if (auto resized = queue_.resize(*max_wr); !resized) return resized;
  }
  return limit ? queue_.set_limit(*limit) : Status{};
}

int SharedReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept {
  if (!context_->alive()) return Context::refuse_child();
  const std::lock_guard guard(lock_);
  return queue_.post(wr_id, sges);
}

engine::Take SharedReceiveQueue::take(std::uint64_t length, engine::TakenReceive& taken) noexcept {
  engine::Take result;
  bool limit_reached = false;
  {
    const std::lock_guard guard(lock_);
    result = queue_.take(length, taken);
    limit_reached = queue_.poll_limit_event();
  }
  if (limit_reached) {
    context_->async_events().push({element_, static_cast<std::uint32_t>(AsyncEvent::kSrqLimitReached)});
  }
  return result;
}

}  // namespace verbena::device
