// Where others come in: the listening sockets of our slots, and the connections made to them.
//
//   accepted --hello open_ring--> feeding --end of connection, or anything more--> closed
//   accepted --hello read_counters--> answered, closed
//   accepted --anything else, another user--> closed
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/strong.h"
#include "transport/datagram.h"
#include "transport/fd.h"
#include "transport/shm/inbound.h"
#include "transport/shm/slot_socket.h"
#include "verbena/result.h"

namespace verbena::transport {

// Thread-safety: claim(), take_news() and has_news(): any thread. All else: one thread at a time.
class Doorway {
 public:
  // More connections than this at once are closed as they come: each slot has one to each other, and there are 255.
  static constexpr std::size_t kMaxConnections = 1024;

  Doorway(int epoll, ForkSet& forks, DropCounter& drops) noexcept : epoll_(epoll), forks_(forks), drops_(drops) {}
  ~Doorway();
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;

  // Claims the first free slot at or after the offset.
  Result<Slot> claim(std::uint32_t offset);
  void set_counter_page(int fd, std::size_t bytes) noexcept;

  void on_listener(std::uint64_t id) noexcept;
  void on_connection(std::uint64_t id) noexcept;

  // Whether rings came or ended since the last take_news().
  bool has_news() const noexcept { return news_.load(std::memory_order_relaxed); }
  // Appends the rings that came. Ends are seen in the rings themselves.
  void take_news(std::vector<std::shared_ptr<Inbound>>& into);

 private:
  struct Connection {
    Fd socket;                         // before its hello
    std::shared_ptr<Inbound> inbound;  // after it; keeps the socket

    int fd() const noexcept { return inbound ? inbound->connection() : socket.get(); }
  };

  int listener(std::uint64_t id) noexcept;
  void turn_away(int listener) noexcept;
  bool admit(Connection& connection, ReceivedHello received);
  bool answer(const Connection& connection) const;
  void close(std::uint64_t id);

  int epoll_;
  ForkSet& forks_;
  DropCounter& drops_;
  bool explained_ = false;
  int counter_fd_ = -1;
  std::size_t counter_bytes_ = 0;
  std::uint64_t last_id_ = 0;
  Fd spare_;  // given up for a moment where no descriptor is left for who connects
  std::unordered_map<std::uint64_t, Connection> connections_;

  std::mutex mutex_;  // guards listeners_ and arrivals_
  std::vector<Fd> listeners_;
  std::vector<std::shared_ptr<Inbound>> arrivals_;
  std::atomic<bool> news_{false};
};

}  // namespace verbena::transport
