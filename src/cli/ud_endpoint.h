// One end of a datagram conversation: a device, queue pairs that share completion queues, buffers, and the
// address-handle directory with one sender a queue pair.
//
// Sends are signaled one in sixteen, for one completion covers all before it. What each posted send must give back when
// it has completed (its place in the directory's sender, or an address handle made for it alone) stands in a row of
// slots, one for each place of the send queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "cli/port_name.h"
#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"
#include "verbena/result.h"

namespace verbena::cli {

struct UdEndpointOptions {
  PortName port{};                 // of no device: the first that can be used; of no number: its first active one
  std::size_t queue_pairs = 1;     // each with a sender of its own
  std::size_t payload_bytes = 0;   // the longest datagram; 0: as long as the port allows
  std::uint32_t send_depth = 128;  // a queue pair
  std::uint32_t receive_depth = 256;
};

// A datagram that was received.
struct Arrival {
  std::size_t queue_pair = 0;
  std::size_t slot = 0;  // its buffer
  ibv_wc completion{};
};

// Thread-safety: none; one owner at a time.
// Ownership:     owns all its verbs objects. Neither moved nor copied.
// Errors:        of the middleware, unchanged.
class UdEndpoint {
 public:
  static Result<std::unique_ptr<UdEndpoint>> open(const UdEndpointOptions& options);
  ~UdEndpoint();
  UdEndpoint(const UdEndpoint&) = delete;
  UdEndpoint& operator=(const UdEndpoint&) = delete;

  std::string device() const { return context_.name(); }
  // The device has more ports than this one.
  bool has_more_ports() const noexcept { return ports_ > 1; }
  const PortView& port() const noexcept { return port_; }  // as it was at open()
  // Bytes of payload in one packet as the port is now, at most what the buffers take: an interface's MTU changes.
  std::uint32_t mtu_now() const;
  std::uint32_t qkey() const noexcept { return qkey_; }
  std::vector<std::uint32_t> qpns() const;
  // Where it can be reached: `first` where that is one of its GIDs, then IPv4, then IPv6 by scope.
  std::vector<Gid> gids(const Gid& first) const;
  // The same with their types; each GID once.
  std::vector<GidEntry> gid_entries(const Gid& first) const;
  AhDirectory& directory() noexcept { return directory_; }
  AhSender& sender(std::size_t queue_pair) noexcept { return senders_[queue_pair]; }
  ibv_pd* domain() const noexcept { return domain_.get(); }

  // Where the next send's payload is to be written. Requires: can_send(queue_pair).
  std::span<std::byte> payload(std::size_t queue_pair) noexcept;
  // False where the send queue is full: poll_sends(), and try again.
  bool can_send(std::size_t queue_pair) const noexcept;
  // Posts the first `bytes` of payload(). Requires: can_send(); peer.address from sender(queue_pair).next(), just
  // before. Where it fails that address is given back.
  Status send(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes);
  // As send(), to an address handle that nobody else uses: it is destroyed when the send has completed, or at once
  // where it fails. Each such send is signaled.
  Status send_and_destroy(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes);

  // Gives back what completed sends held.
  Status poll_sends();
  // What has been received, up to 32; valid until the next call. Each is to be given to repost().
  Result<std::span<const Arrival>> poll_receives();
  // As poll_receives(), but sleeps until there is something, at most until the deadline.
  Result<std::span<const Arrival>> wait_receives(Deadline deadline);
  Status repost(const Arrival& arrival);

  std::span<const std::byte> received(const Arrival& arrival) const noexcept;
  std::span<const std::byte, DatagramBuffers::kGrhBytes> grh(const Arrival& arrival) const noexcept;

  // For a loop that sleeps on more than this: arm, poll once more, sleep on the descriptor, take_event().
  int event_fd() const noexcept { return channel_.fd(); }
  Status arm() { return receive_queue_.arm(); }
  Status take_event();

  // Sends that failed: their completion had another status than success.
  std::uint64_t failed_sends() const noexcept { return failed_sends_; }

 private:
  // What a posted send gives back.
  struct SendSlot {
    std::uint64_t sender_position = 0;  // 0: none
    ibv_ah* own_address = nullptr;      // nullptr: none
  };
  // The send queue of one queue pair; positions count from 1.
  struct SendQueue {
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::vector<SendSlot> slots;
  };

  UdEndpoint() = default;
  Status open_device(const PortName& name);
  Status make_queues(const UdEndpointOptions& options);
  Status make_queue_pairs(const UdEndpointOptions& options);
  Status post(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes, const SendSlot& slot, bool signal);
  void complete(std::size_t queue_pair, std::uint64_t position);
  Result<std::span<const Arrival>> sort(std::span<const ibv_wc> completions);
  std::size_t send_buffer(std::size_t queue_pair) const noexcept;

  // In the order in which they are made; destroyed from the end, but for what the destructor does first.
  Context context_;
  PortView port_;
  ProtectionDomain domain_;
  AhDirectory directory_;
  CompletionChannel channel_;
  CompletionQueue send_queue_;
  CompletionQueue receive_queue_;
  DatagramBuffers receive_buffers_;
  DatagramBuffers send_buffers_;
  std::vector<AhSender> senders_;
  std::vector<QueuePair> queue_pairs_;
  std::vector<SendQueue> send_queues_;
  std::vector<Arrival> arrivals_;
  unsigned ports_ = 1;  // of the device
  std::uint32_t qkey_ = 0;
  std::uint32_t send_depth_ = 0;
  std::uint32_t receive_depth_ = 0;
  std::uint32_t payload_bytes_ = 0;  // of each buffer
  std::uint64_t failed_sends_ = 0;
};

}  // namespace verbena::cli
