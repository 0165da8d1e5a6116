// A completion queue of a context: the engine's, with a lock, a channel, and the queue pairs attached to it.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     keeps the context alive; the channel must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/context.h"
#include "device/event_channel.h"
#include "engine/completion_queue.h"
#include "transport/spin_lock.h"

namespace verbena::device {

using engine::Completion;

class QueuePair;

class CompletionQueue final : public engine::CompletionSink {
 public:
  // `capacity`: 1 to max_cqe, else EINVAL. `channel` nullptr: no events. `element` names it in events.
  static Result<std::unique_ptr<CompletionQueue>> create(Context& context, std::uint32_t capacity,
                                                         EventChannel* channel, std::uint64_t element,
                                                         engine::CompletionQueue::Options options = {});
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  Context& context() noexcept { return *context_; }
  std::uint32_t handle() const noexcept { return handle_; }
  std::uint32_t capacity() const noexcept;

  // Moves completions to the front of `into`; takes in what has arrived where there are none. How many, or a negative
  // errno: -ENODEV in a child of fork, -EIO after an overrun once all that was kept has been told.
  int poll(std::span<Completion> into) noexcept;
  // The same for one, with its time in nanoseconds of the monotonic clock where the queue is stamped. 1, 0 or an errno.
  int poll_one(Completion& completion, std::uint64_t& stamp) noexcept;
  void arm(engine::CompletionQueue::Arm arm) noexcept;
  // Events only after `count` completions, or `period` after the first of them; 0 is without end. Both 0: none of this.
  void moderate(std::uint16_t count, Duration period) noexcept;
  Status resize(std::uint32_t capacity);

  // EBUSY while queue pairs are attached: then it must not be destroyed.
  // Acquire: partner of the release in release_use(), so that a queue that is no longer in use may be destroyed.
  bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }
  // Throws away the events of it that nobody has taken.
  void purge_events() noexcept;

  bool push(const Completion& completion, engine::Place place) noexcept override;
  bool overrun() const noexcept override;

  // The period of moderation is over: tells the channel what waits.
  void on_period_over() noexcept;

  // For queue pairs.
  void attach(QueuePair& queue_pair);
  void forget(QueuePair& queue_pair) noexcept;  // fail_queue_pairs() no longer reaches it
  void release_use() noexcept { users_.fetch_sub(1, std::memory_order_release); }
  void remove_of(Qpn qpn) noexcept;
  void fail_queue_pairs() noexcept;

 private:
  friend class PutOffEvents;
  CompletionQueue(Context& context, std::uint32_t capacity, EventChannel* channel, std::uint64_t element,
                  engine::CompletionQueue::Options options);
  template <class Take>
  int take(std::size_t wanted, Take take) noexcept;
  void raise_overrun() noexcept;

  const std::shared_ptr<Context> context_;
  EventChannel* const channel_;
  const std::uint64_t element_;
  const std::uint32_t handle_;
  const bool stamped_;
  std::atomic<std::int64_t> period_{0};  // of moderation, in nanoseconds. Relaxed: a change need not meet the next push

  mutable transport::SpinLock lock_;
  engine::CompletionQueue queue_;        // guarded by lock_
  std::atomic<bool> maybe_full_{false};  // something was pushed since the last empty poll; release with lock_

  std::uint32_t put_off_ = 0;  // events; these two belong to who receives
  CompletionQueue* next_put_off_ = nullptr;

  std::mutex attached_mutex_;
  std::vector<QueuePair*> attached_;  // guarded by attached_mutex_; once for each side
  std::atomic<std::uint32_t> users_{0};
};

}  // namespace verbena::device
