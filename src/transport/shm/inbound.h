// A ring that another process writes for us.
//
// It is shared between two threads: the one that serves descriptors makes it and learns of its end, the one that
// receives reads it and decides when it is drained.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "host/hello.h"
#include "host/packet_ring.h"
#include "transport/fd.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/watch.h"
#include "verbena/result.h"

namespace verbena::transport {

// Thread-safety: end(), has_ended() and hang_up(): any thread. memory() is for the one reader.
class Inbound {
 public:
  // Maps the ring of an open_ring hello and watches its doorbell. kInvalidArgument for what is no ring.
  static Result<std::shared_ptr<Inbound>> open(const host::Hello& hello, const Fd& ring, Fd doorbell, int epoll);
  ~Inbound();
  Inbound(const Inbound&) = delete;
  Inbound& operator=(const Inbound&) = delete;

  std::span<std::byte> memory() noexcept { return mapping_.bytes(); }

  // Keeps the connection on which the ring came, from before anybody else knows this.
  void keep_connection(Fd connection) noexcept { connection_ = std::move(connection); }
  int connection() const noexcept { return connection_.get(); }
  // Ends the connection at both ends; each side sees it as an end of the other.
  void hang_up() noexcept;

  // The writer is gone: what is in the ring is all there will be.
  void end() noexcept { ended_.store(true, std::memory_order_release); }
  bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }  // pairs with end()

 private:
  Inbound(Mapping mapping, Fd doorbell, int epoll) noexcept
      : mapping_(std::move(mapping)), doorbell_(std::move(doorbell)), epoll_(epoll) {}

  Mapping mapping_;
  Fd doorbell_;
  Fd connection_;
  int epoll_;
  std::atomic<bool> ended_{false};
};

}  // namespace verbena::transport
