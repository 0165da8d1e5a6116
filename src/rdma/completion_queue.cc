#include "verbena/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fmt/format.h>
#include <poll.h>

#include "rdma/verbs_error.h"

namespace verbena {

namespace {

constexpr unsigned kAcknowledgeEvery = 1024;

// Whether the descriptor is readable; false at the deadline.
Result<bool> wait_readable(int fd, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int timeout_ms = static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max()));
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return rdma::verbs_failure("poll", "of the completion channel", errno);
    if (deadline.passed()) return false;
  }
}

}  // namespace

Result<CompletionChannel> CompletionChannel::create(const Context& context) {
  if (!context) return failure(ErrorCode::kInvalidArgument, "a completion channel needs an open device");
  ibv_comp_channel* channel = ibv_create_comp_channel(context.get());
  if (channel == nullptr) return rdma::verbs_failure("ibv_create_comp_channel", "on " + context.name(), errno);
  return CompletionChannel(std::make_shared<VerbsObject<ibv_comp_channel>>(
      channel, ibv_destroy_comp_channel, "ibv_destroy_comp_channel", "completion channel on " + context.name(),
      std::vector<Keeper>{context.keeper()}));
}

namespace {

tl::unexpected<Error> is_empty() {
  return failure(ErrorCode::kInvalidArgument,
                 "the completion queue is empty: moved from, closed, or not made by create()");
}

}  // namespace

// Lives behind cq_context, where ibv_get_cq_event and the release of the queue find it.
struct CompletionQueue::Events {
  ibv_comp_channel* channel = nullptr;
  unsigned unacknowledged = 0;

  void acknowledge(ibv_cq* queue) {
    if (unacknowledged != 0) ibv_ack_cq_events(queue, unacknowledged);
    unacknowledged = 0;
  }

  static int release(ibv_cq* queue) {
    static_cast<Events*>(queue->cq_context)->acknowledge(queue);
    return ibv_destroy_cq(queue);
  }

  static Result<CompletionQueue> create(const Context& context, int depth, ibv_comp_channel* channel,
                                        std::vector<Keeper> parents, const CallSite& place) {
    if (!context) return failure(ErrorCode::kInvalidArgument, "a completion queue needs an open device");
    auto events = std::make_shared<Events>();
    events->channel = channel;
    ibv_cq* queue = ibv_create_cq(context.get(), depth, events.get(), channel, 0);
    if (queue == nullptr) {
      const int code = errno;
      const Result<ibv_device_attr> device = context.query_device();
      return rdma::verbs_failure(
          "ibv_create_cq", fmt::format("of depth {} on {}", depth, context.name()), code,
          fmt::format("the device allows a depth of {}; this process may lock {} of memory (ulimit -l)",
                      device ? std::to_string(device->max_cqe) : "unknown", rdma::memlock_in_words()));
    }
    parents.push_back(events);
    auto object = std::make_shared<VerbsObject<ibv_cq>>(queue, release, "ibv_destroy_cq",
                                                        "completion queue on " + context.name(), std::move(parents));
    object->note_alive(place, nullptr);
    return CompletionQueue(std::move(object), std::move(events));
  }
};

Result<CompletionQueue> CompletionQueue::create(const Context& context, int depth, CallSite place) {
  return Events::create(context, depth, nullptr, {context.keeper()}, place);
}

Result<CompletionQueue> CompletionQueue::create(const Context& context, int depth, const CompletionChannel& channel,
                                                CallSite place) {
  if (!channel) return failure(ErrorCode::kInvalidArgument, "a completion queue with events needs an open channel");
  return Events::create(context, depth, channel.get(), {context.keeper(), channel.keeper()}, place);
}

Result<std::size_t> CompletionQueue::poll(std::span<ibv_wc> out) noexcept {
  if (!object_) return is_empty();
  const int wanted = static_cast<int>(std::min<std::size_t>(out.size(), std::numeric_limits<int>::max()));
  const int got = ibv_poll_cq(get(), wanted, out.data());
  if (got < 0) return rdma::verbs_failure("ibv_poll_cq", "of " + object_->what(), rdma::errno_of(got));
  return static_cast<std::size_t>(got);
}

Status CompletionQueue::arm(bool solicited_only) {
  if (!object_) return is_empty();
  if (const int code = ibv_req_notify_cq(get(), solicited_only ? 1 : 0); code != 0) {
    return rdma::verbs_failure("ibv_req_notify_cq", "of " + object_->what(), rdma::errno_of(code));
  }
  return {};
}

Result<bool> CompletionQueue::take_event() {
  if (!object_) return is_empty();
  if (events_->channel == nullptr) {
    return failure(ErrorCode::kInvalidArgument, object_->what() + " was made without a channel: it raises no events");
  }
  Result<bool> readable = wait_readable(events_->channel->fd, Deadline::at({}));
  if (!readable || !*readable) return readable;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(events_->channel, &queue, &context) != 0) {
    if (errno == EAGAIN) return false;
    return rdma::verbs_failure("ibv_get_cq_event", "of " + object_->what(), errno);
  }
  auto* events = static_cast<Events*>(context);
  if (++events->unacknowledged >= kAcknowledgeEvery) events->acknowledge(queue);
  return true;
}

Result<std::size_t> CompletionQueue::wait(std::span<ibv_wc> out, Deadline deadline) {
  if (out.empty()) return failure(ErrorCode::kInvalidArgument, "waiting for completions needs room for at least one");
  Result<std::size_t> got = poll(out);
  while (got && *got == 0) {
    // Events of completions that a poll took before: nobody else reads them, and they would pile up.
    Result<bool> taken = take_event();
    while (taken && *taken) taken = take_event();
    if (!taken) return tl::make_unexpected(taken.error());
    if (Status armed = arm(); !armed) return tl::make_unexpected(armed.error());
    got = poll(out);
    if (!got || *got != 0) break;
    const Result<bool> readable = wait_readable(events_->channel->fd, deadline);
    if (!readable) return tl::make_unexpected(readable.error());
    if (!*readable) return poll(out);
    got = poll(out);
  }
  return got;
}

}  // namespace verbena
