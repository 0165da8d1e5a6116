// One queue pair with its sender of a directory and its buffers: how the tests of the directory on a device send and
// receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"

namespace verbena::on_device {

inline constexpr std::uint32_t kQkey = 0x1234567;

struct LaneOptions {
  std::uint8_t port = 1;
  std::uint32_t send_depth = 128;
  std::uint32_t receive_depth = 256;
  std::size_t payload_bytes = 64;
  // Of each send, for who keeps accounts of address handles: before it is posted, and before the sender is told that it
  // has completed.
  std::function<void(const ibv_ah*)> posted{};
  std::function<void(const ibv_ah*)> completed{};
};

// Thread-safety: none; one owner at a time.
// Ownership:     owns its verbs objects; the directory must be of the same domain. Its end destroys the queue pair
//                and tells the sender that nothing is in flight.
// Errors:        of the middleware, unchanged.
class Lane {
 public:
  static Result<std::unique_ptr<Lane>> open(const Context& context, const ProtectionDomain& domain,
                                            AhDirectory& directory, const LaneOptions& options = {});
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  AhSender& sender() noexcept { return sender_; }
  std::uint32_t qpn() const noexcept { return pair_.number(); }
  // Sends that completed with another status than success.
  std::uint64_t failed() const noexcept { return failed_; }

  // False where the send queue is full: poll_sends().
  bool has_room() const noexcept { return sender_.outstanding() < options_.send_depth; }
  // To the address that sender().next() gave just before. Requires: has_room() before that. Each send is signaled.
  Status send(ibv_ah* address, std::uint32_t qpn, std::span<const std::byte> payload);
  Status poll_sends();
  // Until all has completed; kTimedOut says what has not.
  Status settle(Deadline deadline);

  using Taker = std::function<void(std::span<const std::byte> payload, std::span<const std::byte, 40> grh,
                                   const ibv_wc& completion)>;
  // Hands over what has come, and posts its buffers again.
  Status receive(const Taker& take);

 private:
  explicit Lane(const LaneOptions& options) : options_(options) {}
  Status make(const Context& context, const ProtectionDomain& domain, AhDirectory& directory);

  LaneOptions options_;
  CompletionQueue sent_;
  CompletionQueue received_;
  DatagramBuffers outgoing_;
  DatagramBuffers incoming_;
  AhSender sender_;
  QueuePair pair_;
  std::vector<const ibv_ah*> addresses_;  // of the sends in flight, by position
  std::uint64_t failed_ = 0;
};

}  // namespace verbena::on_device
