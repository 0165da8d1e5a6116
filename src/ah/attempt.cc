#include "ah/attempt.h"

#include "ah/binding.h"

namespace verbena::ah {

Attempt::Attempt(Binding* pinned) : binding_(pinned) {
  pinned->pins.fetch_add(1, std::memory_order_relaxed);
}

Attempt::~Attempt() {
  if (binding_ != nullptr) binding_->pins.fetch_sub(1, std::memory_order_release);
}

void Attempt::finish(std::optional<Error> error) {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    error_ = std::move(error);
    calls.swap(calls_);
  }
  finished_.notify_all();
  for (const std::function<void()>& call : calls) call();
}

void Attempt::when_done(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) {
      calls_.push_back(std::move(call));
      return;
    }
  }
  call();
}

bool Attempt::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::optional<Status> Attempt::wait(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  if (!finished_.wait_until(lock, deadline.when(), [this] { return done_; })) return std::nullopt;
  if (error_) return Status(tl::make_unexpected(*error_));
  return Status();
}

}  // namespace verbena::ah
