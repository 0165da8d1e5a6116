// An event channel: what a program has in place of an open /dev/infiniband/rdma_cm, and the events that wait in it.
//
// The program's descriptor is one end of a pair of sockets. While an event waits, one byte waits in it, so that poll(),
// O_NONBLOCK and signals do what they do everywhere; taking the byte is the right to take an event. When the program
// closes its end, ours says so.
//
// Thread-safety: under the lock of the service, except take_turn(), which any thread may call without.
// Ownership:     owns its own end. The program's end is the program's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include <rdma/rdma_user_cm.h>

#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::ucm {

struct WaitingEvent {
  rdma_ucm_event_resp response{};
  std::uint32_t counted_by = 0;  // the identifier whose count of events it adds to
  std::uint32_t multicast = 0;   // the membership, where it is about one
  std::uint32_t child = 0;       // the identifier that a connection request made
};

class Channel {
 public:
  struct Opened {
    std::shared_ptr<Channel> channel;
    int fd = -1;  // the program's
  };
  // `flags` as open() takes them.
  static Result<Opened> open(int flags);

  // What fstat() says of the program's end: names this channel whatever number the descriptor has.
  std::uint64_t inode() const noexcept { return inode_; }
  int own_fd() const noexcept { return own_.get(); }
  // True where the program has closed its end.
  bool is_closed() noexcept;

  void post(const WaitingEvent& event);
  // Requires: take_turn() was 0.
  std::optional<WaitingEvent> take();
  // Puts back what could not be handed over.
  void give_back(const WaitingEvent& event);

  // 0 when an event is there, else an errno: EAGAIN, EINTR. Waits where the program's descriptor `fd` does.
  static int take_turn(int fd) noexcept;

  std::deque<WaitingEvent>& events() noexcept { return events_; }
  // Where events were removed from events(). `fd`: the program's descriptor, from which the byte is taken back if none
  // is left.
  void settle(int fd) noexcept;

 private:
  Channel(transport::Fd own, std::uint64_t inode) noexcept : own_(std::move(own)), inode_(inode) {}
  void signal() noexcept;

  transport::Fd own_;
  const std::uint64_t inode_;
  std::deque<WaitingEvent> events_;
  bool signalled_ = false;  // a byte is on its way to whoever takes the next event
};

}  // namespace verbena::ucm
