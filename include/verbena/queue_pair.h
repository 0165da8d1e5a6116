// An unreliable-datagram queue pair, ready to send when it is made.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/completion_queue.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"

namespace verbena {

struct UdOptions {
  std::uint8_t port = 1;
  std::uint32_t qkey = 0x11111111;  // bit 31 set means "the queue pair's own" in a work request: not allowed here
  std::uint16_t pkey_index = 0;
  std::uint32_t first_psn = 0;
  std::uint32_t max_send = 128;
  std::uint32_t max_receive = 128;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_receive_sge = 1;
  std::uint32_t max_inline = 0;
  bool signal_all = false;  // each send completes, flagged or not
};

// Where a UD send goes: an address handle is only half of it.
struct UdPeer {
  ibv_ah* address = nullptr;
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0x11111111;
};

// Thread-safety: posts to one of its two queues by one thread at a time.
// Ownership:     owns the ibv_qp; keeps its domain and completion queues.
// Errors:        create_ud() names the call and the attribute that the device refused. A post returns kExhausted where
//                the queue is full: poll, and post again.
class VERBENA_API QueuePair : public VerbsOwner<ibv_qp> {
 public:
  QueuePair() = default;
  // Created and brought to RTS.
  static Result<QueuePair> create_ud(const ProtectionDomain& domain, const CompletionQueue& send_queue,
                                     const CompletionQueue& receive_queue, const UdOptions& options = {},
                                     CallSite place = CallSite::current());

  std::uint32_t number() const noexcept { return get() != nullptr ? get()->qp_num : 0; }
  std::uint32_t max_inline() const noexcept { return max_inline_; }

  Status post_receive(DatagramBuffers& buffers, std::size_t index, std::uint64_t wr_id) noexcept;
  // `flags` as IBV_SEND_*.
  Status post_send(const UdPeer& peer, ibv_sge payload, std::uint64_t wr_id, unsigned flags) noexcept;
  // To ERR: all posted work completes with IBV_WC_WR_FLUSH_ERR.
  Status flush();

 private:
  QueuePair(std::shared_ptr<VerbsObject<ibv_qp>> object, std::uint32_t max_inline)
      : VerbsOwner(std::move(object)), max_inline_(max_inline) {}

  std::uint32_t max_inline_ = 0;
};

}  // namespace verbena
