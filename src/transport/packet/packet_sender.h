// Sends whole Ethernet frames out of one interface, as they are.
//
// Thread-safety: send(): any thread.
// Ownership:     keeps the DropCounter by reference.
// Errors:        what cannot be sent is counted by reason; a reason is explained once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "transport/datagram.h"
#include "transport/fd.h"
#include "transport/fork_set.h"
#include "verbena/result.h"

namespace verbena::transport {

class PacketSender final : public Sender {
 public:
  // As open_packet_socket(). `forks` keeps its descriptor.
  static Result<std::unique_ptr<PacketSender>> open(unsigned interface_index, DropCounter& drops, ForkSet& forks);

  // The parts of each are a frame; the envelopes are not looked at.
  SendResult send(std::span<const Outgoing> batch, Instant now) noexcept override;

 private:
  PacketSender(Fd socket, DropCounter& drops) noexcept : socket_(std::move(socket)), drops_(drops) {}
  std::size_t send_run(std::span<const Outgoing> batch, bool& full) noexcept;
  void refuse(const Outgoing& frame, int error) noexcept;

  const Fd socket_;
  DropCounter& drops_;
  std::atomic<std::uint64_t> explained_{0};  // bit Drop of what was; relaxed: it guards nothing
};

}  // namespace verbena::transport
