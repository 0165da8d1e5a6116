// A shared receive queue: posted receives that several queue pairs draw from, and the limit that tells when few are
// left.
//
// Thread-safety: none; the owner locks, and puts a ReceiveSource before it for the queue pairs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/limits.h"
#include "engine/receive_queue.h"
#include "engine/sge.h"
#include "verbena/result.h"

namespace verbena::engine {

// A receive that was taken out of a shared queue, copied so that the slot may be used again at once.
struct TakenReceive {
  std::uint64_t wr_id;
  std::uint32_t sge_count;
  std::array<Sge, kMaxSge> sges;

  std::span<const Sge> list() const noexcept { return std::span(sges).first(sge_count); }
  void copy(const ReceiveRequest& request) noexcept {
    wr_id = request.wr_id;
    sge_count = static_cast<std::uint32_t>(request.sges.size());
    std::copy(request.sges.begin(), request.sges.end(), sges.begin());
  }
};

enum class Take : std::uint8_t { kTaken, kEmpty, kTooSmall };

// Where a queue pair gets receives from when it shares them.
//
// Thread-safety: the implementation locks.
class ReceiveSource {
 public:
  // Takes the oldest receive if it has room for `length` bytes; else leaves it where it is.
  virtual Take take(std::uint64_t length, TakenReceive& taken) noexcept = 0;

 protected:
  ~ReceiveSource() = default;
};

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(std::uint32_t capacity, std::uint32_t max_sge) : queue_(capacity, max_sge) {}

  std::uint32_t capacity() const noexcept { return queue_.capacity(); }
  std::uint32_t max_sge() const noexcept { return queue_.max_sge(); }
  std::uint32_t size() const noexcept { return queue_.size(); }
  std::uint32_t limit() const noexcept { return limit_; }

  // As ReceiveQueue::post.
  int post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept { return queue_.post(wr_id, sges); }
  // As ReceiveSource::take.
  Take take(std::uint64_t length, TakenReceive& taken) noexcept;
  // True once after the number of receives fell below the limit: raise SRQ_LIMIT_REACHED. The limit is then 0.
  bool poll_limit_event() noexcept;

  // EINVAL above the capacity. 0 disarms.
  Status set_limit(std::uint32_t limit);
  // EINVAL below the number of posted receives or below the limit; ENOMEM where no memory is left.
  Status resize(std::uint32_t capacity);

 private:
  ReceiveQueue queue_;
  std::uint32_t limit_ = 0;
  bool limit_event_ = false;
};

}  // namespace verbena::engine
