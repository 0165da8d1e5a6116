// Posted sends, oldest first, in slots of one size.
//
//    given back   completed        cursor           posted
//   free   │ done     │ on their way  │ not yet begun  │ free
//   ───────┴──────────┴───────────────┴────────────────┴──────>   positions, which only grow
//
// What is done keeps its place until its completion is polled (place.h).
// A slot is a SendWqe and behind it either the SGE list or the inline data. Slots begin on cache lines.
//
// Thread-safety: none; the send side of a queue pair owns it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/envelope.h"
#include "base/psn.h"
#include "base/qpn.h"
#include "base/strong.h"
#include "engine/place.h"
#include "engine/rate.h"
#include "engine/send_request.h"
#include "engine/sge.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/imm_dt.h"

namespace verbena::engine {

// What a datagram needs beside its payload: ready for the wire when it is posted.
struct DatagramPart {
  static constexpr std::size_t kHeaderRoom = wire::Bth::kSize + wire::Deth::kSize + wire::ImmDt::kSize;

  Envelope envelope;
  std::array<std::byte, kHeaderRoom> header;
  Qpn destination_qpn;
  std::uint8_t header_size;
};

// What a request on a connection needs: its packets are made one by one (requester.h).
struct ConnectedPart {
  std::uint64_t remote_address;
  std::uint64_t compare_add;
  std::uint64_t swap;
  MemoryKey rkey;
  std::uint32_t immediate;  // in network order; or the key to invalidate
  Psn first_psn;
  std::uint32_t packet_count;    // PSNs it takes; 0 for what goes on in this host only
  std::uint32_t shared_queue;    // XRC: the shared receive queue at the other end
  std::uint64_t receive_number;  // how many requests before it take a receive at the other end
  MemoryKey window;              // to be bound, with region, access and type; compare_add is the length
  MemoryKey region;
  AccessFlags access;
  WindowType window_type;
  bool fence;
  bool solicited;
};

struct SendWqe {
  static constexpr std::uint8_t kInline = 1;
  static constexpr std::uint8_t kSignaled = 2;
  static constexpr std::uint8_t kRefused = 4;  // accepted, and to fail with LOC_QP_OP_ERR when its turn comes

  std::uint64_t wr_id;
  const AddressHandle* address;  // as posted, to tell who is named; may be gone. nullptr: none, or forgotten
  std::uint32_t length;          // of the payload; UINT32_MAX for all that is longer
  BytePeriod byte_period;        // the pace of the address handle
  SendOpcode opcode;
  std::uint8_t sge_count;
  std::uint8_t flags;
  union {
    DatagramPart datagram;
    ConnectedPart connected;
  };
};

// What a datagram counts for at a static rate.
inline std::uint32_t paced_size(const SendWqe& wqe) noexcept {
  return wqe.length + wqe.datagram.header_size;
}

class SendQueue {
 public:
  // Every slot has room for `max_sge` SGEs and for `max_inline` bytes, whichever is more, and is filled up to a cache
  // line.
  SendQueue(std::uint32_t capacity, std::uint32_t max_sge, std::uint32_t max_inline);

  std::uint32_t capacity() const noexcept { return capacity_; }
  // What the slots have room for: at least what was asked.
  std::uint32_t max_inline() const noexcept { return max_inline_; }

  bool full() noexcept {
    if (posted_ - free_until_ < capacity_) [[likely]]
      return false;
    return posted_ - freed() >= capacity_;
  }
  // How many more can be posted.
  std::size_t room() noexcept { return capacity_ - static_cast<std::size_t>(posted_ - freed()); }
  bool all_begun() const noexcept { return cursor_ == posted_; }
  std::size_t on_their_way() const noexcept { return static_cast<std::size_t>(cursor_ - completed_); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(posted_ - completed_); }

  // The slot that post() will add. Requires: !full().
  SendWqe& free_slot() noexcept { return wqe_at(posted_); }
  void post() noexcept { ++posted_; }
  // The next to begin. Requires: !all_begun().
  SendWqe& next() noexcept { return wqe_at(cursor_); }
  const SendWqe& next() const noexcept { return const_cast<SendQueue*>(this)->next(); }
  void begin() noexcept { ++cursor_; }
  // The oldest. Requires: size() != 0.
  SendWqe& oldest() noexcept { return wqe_at(completed_); }
  // Also counts as begun, where it was not.
  void complete() noexcept {
    ++completed_;
    if (cursor_ < completed_) cursor_ = completed_;
  }
  // What polling the completion of the request that was completed last gives back.
  Place place() noexcept { return {&given_back_, completed_}; }
  // By position, as the picture counts. Requires: completed() <= position < posted().
  SendWqe& at(std::uint64_t position) noexcept { return wqe_at(position); }
  const SendWqe& at(std::uint64_t position) const noexcept { return const_cast<SendQueue*>(this)->wqe_at(position); }
  std::uint64_t completed() const noexcept { return completed_; }
  std::uint64_t begun() const noexcept { return cursor_; }
  std::uint64_t posted() const noexcept { return posted_; }
  // Takes back the youngest begin(). Requires: on_their_way() != 0.
  SendWqe& unbegin() noexcept { return wqe_at(--cursor_); }
  // Takes the address out of the requests that keep a place and name it; how many.
  std::size_t forget_address(const AddressHandle& handle) noexcept;
  void clear() noexcept { completed_ = cursor_ = posted_; }
  // Every place is free. Requires: empty, and no completion of it can be polled any more.
  void give_back_all() noexcept { given_back_.position.store(posted_, std::memory_order_relaxed); }

  static Sge* sges_of(SendWqe& wqe) noexcept { return reinterpret_cast<Sge*>(&wqe + 1); }
  static std::byte* inline_data_of(SendWqe& wqe) noexcept { return reinterpret_cast<std::byte*>(&wqe + 1); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };

  std::uint64_t freed() noexcept { return free_until_ = given_back_.position.load(std::memory_order_relaxed); }
  SendWqe& wqe_at(std::uint64_t position) noexcept {
    return *reinterpret_cast<SendWqe*>(&lines_[(position & mask_) * stride_]);
  }

  std::vector<Line> lines_;
  std::uint64_t mask_;
  std::size_t stride_;  // in lines
  std::uint32_t capacity_;
  std::uint32_t max_inline_;
  std::uint64_t posted_ = 0;
  std::uint64_t cursor_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t free_until_ = 0;  // as far as given_back_ has been read
  GivenBack given_back_;
};

}  // namespace verbena::engine
