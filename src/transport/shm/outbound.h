// The way to one slot: the ring that we write for it, from the first datagram until one of the two is gone.
//
//   idle --connect--> linked --end of connection, or impossible tail--> idle
//   idle --refused--> idle, and no attempt for retry_interval
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/strong.h"
#include "transport/datagram.h"
#include "transport/fd.h"
#include "transport/shm/exchange.h"
#include "transport/shm/ring_sender.h"
#include "transport/shm/shared_memory.h"
#include "transport/spin_lock.h"

namespace verbena::transport {

// What all ways out of one exchange have in common.
struct OutboundContext {
  const ExchangeOptions& options;
  DropCounter& drops;
  ForkSet& forks;
  Slot own_slot;
  int epoll = -1;
};

// Thread-safety: any thread may call anything; a spin lock is held meanwhile.
class alignas(host::kCacheLine) Outbound {
 public:
  ExchangeResult send(const OutboundContext& context, Slot slot, std::span<const Outgoing> batch, Instant now) noexcept;
  Reach reach(const OutboundContext& context, Slot slot, Instant now) noexcept;
  // As RingSender::nudge(), where there is a ring and nobody is writing it.
  void nudge() noexcept;
  // The connection of that generation has ended.
  void on_end(const OutboundContext& context, std::uint64_t generation) noexcept;

 private:
  struct Link {
    std::uint64_t generation;
    Fd socket;
    Fd doorbell;
    Mapping memory;
    RingSender sender;
  };

  bool connect(const OutboundContext& context, Slot slot, Instant now) noexcept;
  Result<std::unique_ptr<Link>> make_link(const OutboundContext& context, Slot slot);
  void unlink(const OutboundContext& context) noexcept;

  SpinLock lock_;  // guards all below
  Reach refusal_ = Reach::kAbsent;
  bool tried_ = false;
  bool explained_ = false;
  Instant tried_at_;
  std::uint64_t generation_ = 0;
  std::unique_ptr<Link> link_;
};

}  // namespace verbena::transport
