// Datagrams between the processes of one user in one network namespace, through rings in shared memory.
//
// A process listens under the name of each slot it holds (host/slot_name.h). To reach a slot, a process connects
// there, makes sure that its own user listens, and hands over a ring of its own making (host/hello.h): it may write
// at once, nobody answers. The connection then carries nothing; its end tells each side that the other is gone. What
// was committed to a ring is still received after its writer's death; what is left in a ring when its reader dies is
// counted by its writer as kPeerGone.
//
//   send()      connects where needed, copies into the peer's ring, rings its doorbell if the peer sleeps
//   serve()     what comes by descriptor: connections, hellos, counter requests, ends of connections
//   receive()   polls all rings that others write for us, and the one for datagrams to ourselves
//
// Sleeping: arm_doorbells(); where it says true, wait for fd(); then serve(), disarm_doorbells(), receive().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/strong.h"
#include "transport/datagram.h"
#include "verbena/result.h"

namespace verbena::transport {

struct ExchangeOptions {
  std::uint32_t slot_offset = 0;                     // where the search for a free slot begins: the process id, say
  std::size_t ring_capacity = std::size_t{1} << 18;  // bytes, a power of two; each peer has one
  Duration stall_limit = std::chrono::milliseconds(100);
  Duration retry_interval = std::chrono::milliseconds(10);  // between attempts to connect to a slot that failed
};

// How a slot can be reached from here.
enum class Reach : std::uint8_t {
  kShared,   // through shared memory: sent, or full
  kAbsent,   // nobody holds the slot (any more) in this network namespace
  kForeign,  // another user's process holds it, or shared memory cannot be had: use the network
};

struct ExchangeResult {
  SendResult sent;  // nothing taken unless kShared
  Reach reach = Reach::kShared;
};

// Thread-safety: send(), reach(), claim_another() and slot getters: any thread. receive(), arm_doorbells(),
//                disarm_doorbells(): one thread at a time. serve(): one thread at a time, which may be another.
//                set_counter_page(): before the first serve().
// Ownership:     keeps the DropCounter by reference.
// Errors:        kPeerStalled, kPeerGone and kDatagramTooLong are counted; where nothing was taken, the caller counts.
class Exchange {
 public:
  // Claims a slot. kExhausted where all 255 of this network namespace are taken; kInvalidArgument for a capacity that
  // is no ring's; else what the system refused.
  static Result<std::unique_ptr<Exchange>> open(const ExchangeOptions& options, DropCounter& drops);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Slot slot() const noexcept;  // the first that was claimed
  bool owns(Slot slot) const noexcept;
  // Claims one more slot of this process; errors as open().
  Result<Slot> claim_another();

  // Hands out this descriptor (a CounterMemory's; not owned) to whoever asks for counters and is root or this user.
  void set_counter_page(int fd, std::size_t bytes) noexcept;

  // Readable when serve() has something to do, which includes a doorbell. Never changes.
  int fd() const noexcept;
  void serve() noexcept;

  // All of `batch` is for processes that hold `slot`. One doorbell at most. Holds a spin lock of that slot.
  ExchangeResult send(Slot slot, std::span<const Outgoing> batch, Instant now) noexcept;
  // Whether a send to `slot` would go through shared memory; connects to find out.
  Reach reach(Slot slot, Instant now) noexcept;

  // An answer from `slot` is awaited: rings where what was sent there is not being taken. To be called now and then
  // while waiting; a process that neither polls nor sleeps is reached no other way.
  void nudge(Slot slot) noexcept;

  // Hands up to `budget` datagrams to `receiver`, which may call send(). Returns how many.
  std::size_t receive(Receiver& receiver, std::size_t budget) noexcept;

  // Asks all peers to ring. False where something is there already: do not sleep (but call disarm_doorbells()).
  bool arm_doorbells() noexcept;
  void disarm_doorbells() noexcept;

  // In the child of a fork: closes all, tells nobody, takes no lock. Nothing but the destructor may follow.
  void abandon() noexcept;

 private:
  class Impl;
  explicit Exchange(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena::transport
