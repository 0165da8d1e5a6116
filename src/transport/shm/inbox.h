// All the rings that one exchange reads, in turn.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "host/packet_ring.h"
#include "transport/datagram.h"
#include "transport/shm/inbound.h"

namespace verbena::transport {

// Thread-safety: none; one owner at a time.
// Ownership:     the memory of the loopback ring is the caller's and outlives this.
class Inbox {
 public:
  Inbox(std::span<std::byte> loopback, DropCounter& drops);

  void add(std::shared_ptr<Inbound> inbound);
  // Some writer has gone: its ring is let go once it is empty.
  void note_ends() noexcept { has_ends_ = true; }

  // Hands out up to `budget` datagrams, the rings in turn; the next call begins where this one ended.
  std::size_t receive(Receiver& receiver, std::size_t budget) noexcept;
  bool arm() noexcept;
  void disarm() noexcept;

 private:
  struct Lane {
    host::RingConsumer ring;
    std::shared_ptr<Inbound> inbound;  // none for the loopback
    bool broken = false;
  };

  std::size_t drain(Lane& lane, Receiver& receiver, std::size_t budget) noexcept;
  void on_broken(Lane& lane) noexcept;
  void let_go_of_the_gone() noexcept;

  DropCounter& drops_;
  std::vector<Lane> lanes_;
  std::size_t first_ = 0;  // the lane that comes first
  bool has_ends_ = false;
  bool explained_ = false;
};

}  // namespace verbena::transport
