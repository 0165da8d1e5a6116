// A ring of datagrams in memory that two processes share: one producer, one consumer, no system call, no lock.
//
//   line 0      magic, version, capacity                     written once by format_ring()
//   line 1      tail: bytes consumed                         the consumer's
//   line 2      sleeping: the consumer waits for a doorbell  both
//   from 4096   capacity bytes of records                    the producer's
//
// A position is a count of bytes since the beginning; its place is position mod capacity, a power of two. Records
// begin on cache lines and do not wrap:
//
//     | word 8 | envelope 36, unless it is that of the record before | bytes |
//
// The word holds the size, flags and the low 32 bits of position / 64, and is never zero. It is stored last, with
// release: the consumer polls *it*, so that one cache line brings the news and a small datagram together; there is no
// head to read. That needs the word after the newest record to be zero. The producer keeps the first word of the
// next few lines at zero; as it does so after publishing, the lines are its own again by the time it needs them.
// A batch is written from its second word on and shown by storing its first, so that the line which the consumer polls
// changes hands once a batch. Where a record does not fit before the end of the ring, a filler record leads to the
// beginning.
//
// The producer learns of free space from `tail`, which it reads only when what it knew is used up. The consumer
// stores it once a batch.
//
// Doorbell: the consumer exchanges 1 into `sleeping` and then looks at the ring once more; the producer publishes and
// then exchanges 0. Both are read-modify-write operations of one word, so one of them comes first: either the
// consumer sees the record, or the producer sees the 1 and must ring. It rings once a sleep.
//
// Neither side trusts the other. Every number is checked before use; one that cannot be makes the ring *broken*,
// which is final. The bytes of a record stay in memory that the other side can write: whoever reads them must not
// check first and read again.
//
// std::atomic_ref on the shared words is the only synchronisation; there is no lock, thread or system call here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/envelope.h"

namespace verbena::host {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kRingHeaderBytes = 4096;
inline constexpr std::size_t kMinRingCapacity = std::size_t{1} << 12;
inline constexpr std::size_t kMaxRingCapacity = std::size_t{1} << 24;

// Whether a ring can have this capacity: a power of two between the two above.
bool is_ring_capacity(std::uint64_t capacity) noexcept;
constexpr std::size_t ring_memory_bytes(std::size_t capacity) noexcept {
  return kRingHeaderBytes + capacity;
}
// The longest datagram a ring takes: whatever the positions, it fits into an empty ring.
constexpr std::size_t max_ring_datagram(std::size_t capacity) noexcept {
  return capacity / 4 - 2 * kCacheLine;
}

// Makes an empty ring of all of `memory`. Requires: zeroed, aligned to a cache line, ring_memory_bytes(c) long for a
// possible capacity c.
void format_ring(std::span<std::byte> memory) noexcept;

// Whether `memory` begins as format_ring() left it for memory of this length. A consumer asks before it attaches.
bool is_ring(std::span<const std::byte> memory) noexcept;

enum class Push { kStored, kFull, kTooLong, kBroken };

// Thread-safety: none; one owner at a time.
// Ownership:     the memory is the caller's and outlives this.
class RingProducer {
 public:
  RingProducer() noexcept = default;
  // Requires: format_ring(memory), and nothing pushed yet.
  explicit RingProducer(std::span<std::byte> memory) noexcept;

  // Copies one datagram (the concatenation of `parts`, `size` bytes) into the ring. The consumer sees it no sooner than
  // publish(), so that a batch disturbs the line which the consumer polls only once.
  Push push(const Envelope& envelope, std::span<const std::span<const std::byte>> parts, std::uint32_t size,
            bool has_icrc) noexcept;

  // Shows the consumer all that was pushed.
  void publish() noexcept;

  // Whether the consumer must be woken for what was published since the last call; ask once a batch.
  bool take_doorbell() noexcept;

  // Bytes the consumer has taken so far, read afresh: it moves on while the consumer lives.
  std::uint64_t consumed() noexcept;

  // Whether the consumer has yet to take something, as far as it says.
  bool has_unread() noexcept { return consumed() != head_; }

  // How many datagrams were published and not yet given back by the consumer. Walks the ring: for the end of a ring.
  std::uint64_t count_unread() noexcept;

 private:
  bool make_room(std::uint64_t bytes) noexcept;
  void append(std::uint64_t word, std::uint64_t record_bytes) noexcept;
  void clear_ahead() noexcept;
  std::byte* place(std::uint64_t position) const noexcept;

  std::byte* header_ = nullptr;
  std::byte* records_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0;            // where the next record goes
  std::uint64_t tail_ = 0;            // the consumer's tail as last read
  std::uint64_t cleared_ = 0;         // the first word of each line in [head_, cleared_) is zero
  std::byte* unpublished_ = nullptr;  // the place of the first record that is not published
  std::uint64_t unpublished_word_ = 0;
  Envelope last_envelope_;
  bool has_last_envelope_ = false;
  bool broken_ = false;
};

struct RingRecord {
  const Envelope* envelope = nullptr;  // valid until the next pop()
  std::span<const std::byte> bytes;    // in the ring; valid until release()
  bool has_icrc = false;
};

enum class Pop { kRecord, kEmpty, kBroken };

// Thread-safety: none; one owner at a time.
// Ownership:     the memory is the caller's and outlives this.
class RingConsumer {
 public:
  RingConsumer() noexcept = default;
  // Requires: is_ring(memory) held, or memory of a possible length whose header is not to be relied on.
  explicit RingConsumer(std::span<std::byte> memory) noexcept;

  // The next record, if one is there. kBroken stays so.
  Pop pop(RingRecord& record) noexcept;
  // The record popped last will be popped again. Requires: a pop() that gave kRecord, and no release() since.
  void put_back() noexcept { head_ = last_; }
  // Gives the space of all records popped so far back to the producer.
  void release() noexcept;

  // In the header because it is what an idle poll consists of.
  bool looks_empty() const noexcept {
    auto& word = *reinterpret_cast<std::uint64_t*>(records_ + (head_ & (capacity_ - 1)));
    return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed) == 0;
  }
  // Asks for a doorbell. False where the ring is not empty: do not sleep.
  bool arm() noexcept;
  void disarm() noexcept;

 private:
  Pop broken() noexcept;
  Pop skip_filler() noexcept;
  Pop open_record(std::uint64_t word, RingRecord& record) noexcept;

  std::byte* header_ = nullptr;
  std::byte* records_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t head_ = 0;      // the record that comes next
  std::uint64_t last_ = 0;      // the record popped last
  std::uint64_t released_ = 0;  // the tail as last stored
  Envelope envelope_;
  bool has_envelope_ = false;
  bool broken_ = false;
};

}  // namespace verbena::host
