// One attempt to make a destination ready, and all who wait for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "verbena/deadline.h"
#include "verbena/result.h"

namespace verbena::ah {

struct Binding;

// Thread-safety: any thread.
// Ownership:     shared by the binding, while it lasts, and by tickets. Pins its binding: that is not given back
//                while a ticket may still turn into a handle.
// Errors:        the attempt's own; success is the absence of one.
struct Attempt {
  explicit Attempt(Binding* pinned);
  // Answered from the start, for what needs no attempt.
  explicit Attempt(Error error) : done_(true), error_(std::move(error)) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  Binding* binding() const noexcept { return binding_; }

  // The first outcome stands.
  void finish(std::optional<Error> error);
  bool done() const;
  // Called once when it is finished, by who finishes it; at once where it is. Must not wait.
  void when_done(std::function<void()> call);
  // Nothing where the deadline passed first; otherwise the outcome.
  std::optional<Status> wait(Deadline deadline) const;

  // What the binding's Core knows of it; guarded by Core's mutex.
  bool outdated = false;  // what it goes by has changed since it began: its failure would say nothing of now
  bool remade = false;    // it was outdated once, and begun anew

 private:
  Binding* const binding_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::condition_variable finished_;
  bool done_ = false;                         // guarded by mutex_
  std::optional<Error> error_;                // guarded by mutex_
  std::vector<std::function<void()>> calls_;  // guarded by mutex_
};

}  // namespace verbena::ah
