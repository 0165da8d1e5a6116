// Completion events that wait until the answers of a batch are on their way.
//
// Who is woken by a receive may answer at once, on another processor. On a connection its answer must not overtake the
// acknowledgement of what it answers: the other end would see the receive complete before the send, which no hardware
// does, and programs that wait for one event after the other (perftest) would count wrongly.
//
// Thread-safety: one owner at a time, who receives. Events of other threads are not put off.
// Ownership:     none; the completion queues live until the read section of the owner ends.
#pragma once

namespace verbena::device {

class CompletionQueue;

class PutOffEvents {
 public:
  // While one exists, events of completions that this thread pushes are put off.
  class Scope {
   public:
    explicit Scope(PutOffEvents& events) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  // Raises what was put off.
  void flush() noexcept;

  // For CompletionQueue: true where its event waits for flush().
  static bool takes(CompletionQueue& queue) noexcept;

 private:
  CompletionQueue* first_ = nullptr;
};

}  // namespace verbena::device
