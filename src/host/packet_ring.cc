#include "host/packet_ring.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

namespace verbena::host {
namespace {

constexpr std::uint64_t kMagic = 0x56524252494e4731;  // "VRBRING1": the version is part of it
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kCapacityAt = 8;
constexpr std::size_t kTailAt = kCacheLine;
constexpr std::size_t kSleepingAt = 2 * kCacheLine;

// The word of a record: sequence 32 | flags 8 | size 24.
constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kEnvelopeBytes = 36;
constexpr std::uint64_t kSizeMask = 0xffffff;
constexpr std::uint64_t kPublished = std::uint64_t{1} << 24;
constexpr std::uint64_t kHasIcrc = std::uint64_t{1} << 25;
constexpr std::uint64_t kSameEnvelope = std::uint64_t{1} << 26;
constexpr std::uint64_t kFiller = std::uint64_t{1} << 27;
constexpr std::uint64_t kKnownBits = kSizeMask | kPublished | kHasIcrc | kSameEnvelope | kFiller;
constexpr unsigned kSequenceShift = 32;
static_assert(kMaxRingCapacity - 1 <= kSizeMask);

// How far behind the newest record the first words of lines are kept at zero: enough for eight small datagrams, so that
// their lines have come back from the consumer's cache by then.
constexpr std::uint64_t kClearAhead = 16 * kCacheLine;

// What a ring carries of an envelope is what stands before `link`: packets of InfiniBand bring their own headers.
static_assert(offsetof(Envelope, link) == kEnvelopeBytes && std::is_trivially_copyable_v<Envelope>);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free &&
              std::atomic_ref<std::uint32_t>::is_always_lock_free);

std::atomic_ref<std::uint64_t> word64(std::byte* at) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

std::atomic_ref<std::uint32_t> word32(std::byte* at) noexcept {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

constexpr std::uint64_t whole_lines(std::uint64_t bytes) noexcept {
  return (bytes + kCacheLine - 1) & ~std::uint64_t{kCacheLine - 1};
}

constexpr std::uint64_t sequence_of(std::uint64_t position) noexcept {
  return (position / kCacheLine) << kSequenceShift;
}

constexpr std::uint64_t record_bytes(std::uint64_t word) noexcept {
  const std::uint64_t envelope = (word & kSameEnvelope) != 0 ? 0 : kEnvelopeBytes;
  return whole_lines(kWordBytes + envelope + (word & kSizeMask));
}

}  // namespace

bool is_ring_capacity(std::uint64_t capacity) noexcept {
  return capacity >= kMinRingCapacity && capacity <= kMaxRingCapacity && std::has_single_bit(capacity);
}

void format_ring(std::span<std::byte> memory) noexcept {
  word64(memory.data() + kCapacityAt).store(memory.size() - kRingHeaderBytes, std::memory_order_relaxed);
  word64(memory.data() + kMagicAt).store(kMagic, std::memory_order_relaxed);
}

bool is_ring(std::span<const std::byte> memory) noexcept {
  if (memory.size() <= kRingHeaderBytes || !is_ring_capacity(memory.size() - kRingHeaderBytes)) return false;
  std::uint64_t magic = 0;
  std::uint64_t capacity = 0;
  std::memcpy(&magic, memory.data() + kMagicAt, sizeof magic);
  std::memcpy(&capacity, memory.data() + kCapacityAt, sizeof capacity);
  return magic == kMagic && capacity == memory.size() - kRingHeaderBytes;
}

RingProducer::RingProducer(std::span<std::byte> memory) noexcept
    : header_(memory.data()),
      records_(memory.data() + kRingHeaderBytes),
      capacity_(memory.size() - kRingHeaderBytes),
      cleared_(capacity_) {}

std::byte* RingProducer::place(std::uint64_t position) const noexcept {
  return records_ + (position & (capacity_ - 1));
}

std::uint64_t RingProducer::consumed() noexcept {
  const auto tail = word64(header_ + kTailAt).load(std::memory_order_acquire);  // pairs with release()
  if (tail < tail_ || tail > head_ || tail % kCacheLine != 0) {
    broken_ = true;
  } else {
    tail_ = tail;
  }
  return tail_;
}

// Whether `bytes` more can be written with a zero word behind them.
bool RingProducer::make_room(std::uint64_t bytes) noexcept {
  const std::uint64_t needed = head_ + bytes + kCacheLine;
  return needed <= tail_ + capacity_ || needed <= consumed() + capacity_;
}

// The words behind the first that is not published can be stored at once: nobody gets to them before that one.
void RingProducer::append(std::uint64_t word, std::uint64_t bytes) noexcept {
  const std::uint64_t next = head_ + bytes;
  if (cleared_ <= next) {
    word64(place(next)).store(0, std::memory_order_relaxed);  // seen by whoever sees the word below
    cleared_ = next + kCacheLine;
  }
  word |= kPublished | sequence_of(head_);
  if (unpublished_ == nullptr) {
    unpublished_ = place(head_);
    unpublished_word_ = word;
  } else {
    word64(place(head_)).store(word, std::memory_order_relaxed);
  }
  head_ = next;
}

void RingProducer::publish() noexcept {
  if (unpublished_ == nullptr) return;
  word64(unpublished_).store(unpublished_word_, std::memory_order_release);  // pairs with pop()
  unpublished_ = nullptr;
  clear_ahead();
}

void RingProducer::clear_ahead() noexcept {
  const std::uint64_t end = std::min(head_ + kClearAhead, tail_ + capacity_);
  for (; cleared_ < end; cleared_ += kCacheLine) word64(place(cleared_)).store(0, std::memory_order_relaxed);
}

Push RingProducer::push(const Envelope& envelope, std::span<const std::span<const std::byte>> parts, std::uint32_t size,
                        bool has_icrc) noexcept {
  if (size > max_ring_datagram(capacity_)) return Push::kTooLong;
  const bool same = has_last_envelope_ && envelope == last_envelope_;
  const std::uint64_t word = size | (has_icrc ? kHasIcrc : 0) | (same ? kSameEnvelope : 0);
  const std::uint64_t bytes = record_bytes(word);
  const std::uint64_t to_end = capacity_ - (head_ & (capacity_ - 1));
  const std::uint64_t filler = bytes > to_end ? to_end : 0;
  if (!make_room(filler + bytes)) return broken_ ? Push::kBroken : Push::kFull;
  if (filler != 0) append(kFiller, filler);
  std::byte* at = place(head_) + kWordBytes;
  if (!same) {
    std::memcpy(at, &envelope, kEnvelopeBytes);
    at += kEnvelopeBytes;
    last_envelope_ = envelope;
    has_last_envelope_ = true;
  }
  for (const auto part : parts) {
    if (part.empty()) continue;
    std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  append(word, bytes);
  return Push::kStored;
}

bool RingProducer::take_doorbell() noexcept {
  // Full order with the exchange of arm(): see the top of the header.
  return word32(header_ + kSleepingAt).exchange(0, std::memory_order_seq_cst) != 0;
}

std::uint64_t RingProducer::count_unread() noexcept {
  std::uint64_t unread = 0;
  for (std::uint64_t at = consumed(); at < head_;) {
    const auto word = word64(place(at)).load(std::memory_order_relaxed);
    if ((word & kFiller) != 0) {
      at += capacity_ - (at & (capacity_ - 1));
    } else {
      at += record_bytes(word);
      ++unread;
    }
  }
  return unread;
}

RingConsumer::RingConsumer(std::span<std::byte> memory) noexcept
    : header_(memory.data()), records_(memory.data() + kRingHeaderBytes), capacity_(memory.size() - kRingHeaderBytes) {}

Pop RingConsumer::broken() noexcept {
  broken_ = true;
  return Pop::kBroken;
}

// A filler at the beginning of the ring would lead nowhere.
Pop RingConsumer::skip_filler() noexcept {
  const std::uint64_t place = head_ & (capacity_ - 1);
  if (place == 0) return broken();
  head_ += capacity_ - place;
  return Pop::kRecord;
}

Pop RingConsumer::pop(RingRecord& record) noexcept {
  if (broken_) return Pop::kBroken;
  for (;;) {
    const std::uint64_t place = head_ & (capacity_ - 1);
    const auto word = word64(records_ + place).load(std::memory_order_acquire);  // pairs with publish()
    if (word == 0) return Pop::kEmpty;
    if ((word & kPublished) == 0 || (word >> kSequenceShift) != (sequence_of(head_) >> kSequenceShift)) return broken();
    if ((word & 0xffffffff & ~kKnownBits) != 0) return broken();
    if ((word & kFiller) == 0) return open_record(word, record);
    if (skip_filler() == Pop::kBroken) return Pop::kBroken;
  }
}

Pop RingConsumer::open_record(std::uint64_t word, RingRecord& record) noexcept {
  const std::uint64_t place = head_ & (capacity_ - 1);
  const std::uint64_t bytes = record_bytes(word);
  const std::uint64_t size = word & kSizeMask;
  if (size > max_ring_datagram(capacity_) || bytes > capacity_ - place) return broken();
  if (head_ - released_ + bytes > capacity_) return broken();
  const std::byte* at = records_ + place + kWordBytes;
  if ((word & kSameEnvelope) == 0) {
    std::memcpy(static_cast<void*>(&envelope_), at, kEnvelopeBytes);
    has_envelope_ = true;
    at += kEnvelopeBytes;
  } else if (!has_envelope_) {
    return broken();
  }
  record = {.envelope = &envelope_, .bytes = {at, size}, .has_icrc = (word & kHasIcrc) != 0};
  last_ = head_;
  head_ += bytes;
  return Pop::kRecord;
}

void RingConsumer::release() noexcept {
  if (released_ == head_) return;
  released_ = head_;
  word64(header_ + kTailAt).store(head_, std::memory_order_release);  // pairs with consumed()
}

bool RingConsumer::arm() noexcept {
  // Full order with the exchange of take_doorbell(): see the top of the header.
  word32(header_ + kSleepingAt).exchange(1, std::memory_order_seq_cst);
  return looks_empty() || broken_;
}

void RingConsumer::disarm() noexcept {
  word32(header_ + kSleepingAt).store(0, std::memory_order_relaxed);
}

}  // namespace verbena::host
