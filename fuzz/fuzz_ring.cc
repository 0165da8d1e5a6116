// A packet ring that either end may have filled with anything.
//
// Input: one byte of choices, then what lies in the ring: its header's first three lines (tail, sleeping flag), then
// records from the beginning of the ring on; the rest is zero. Holds: the consumer never leaves the memory, ends after
// no more records than the ring can hold, stays broken once broken; a producer in front of an arbitrary tail stores
// only what a consumer reads back.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "host/packet_ring.h"
#include "require.h"

namespace verbena::host {
namespace {

using fuzz::require;

struct alignas(kCacheLine) Line {
  std::array<std::byte, kCacheLine> bytes{};
};

constexpr std::size_t kSharedHeader = 3 * kCacheLine;
constexpr std::size_t kMemoryBytes = ring_memory_bytes(kMinRingCapacity);

// The ring's memory, allocated to the byte so that the sanitizer sees each step outside.
std::vector<Line> memory_of(std::span<const std::byte> input) {
  std::vector<Line> lines(kMemoryBytes / sizeof(Line));
  auto bytes = std::as_writable_bytes(std::span(lines));
  const auto header = input.first(std::min(input.size(), kSharedHeader));
  std::copy(header.begin(), header.end(), bytes.begin());
  const auto records = input.subspan(header.size(), std::min(input.size() - header.size(), kMinRingCapacity));
  std::copy(records.begin(), records.end(), bytes.begin() + kRingHeaderBytes);
  return lines;
}

bool lies_in(std::span<const std::byte> bytes, std::span<const std::byte> memory) {
  return bytes.data() >= memory.data() && bytes.data() + bytes.size() <= memory.data() + memory.size();
}

unsigned sum_of(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const auto byte : bytes) sum += std::to_integer<unsigned>(byte);
  return sum;
}

void consume(std::span<std::byte> memory, bool release_each) {
  is_ring(memory);
  RingConsumer consumer(memory);
  RingRecord record;
  // Each record takes a line at least, and its sequence number fits one lap only.
  constexpr std::size_t kMostRecords = kMinRingCapacity / kCacheLine;
  std::size_t count = 0;
  auto pop = consumer.pop(record);
  for (; pop == Pop::kRecord; pop = consumer.pop(record)) {
    require(lies_in(record.bytes, memory), "a record lies in the ring");
    require(record.envelope != nullptr, "a record has an envelope");
    require(++count <= kMostRecords, "a lap ends");
    static volatile unsigned sink = 0;
    sink = sink + sum_of(record.bytes);
    if (release_each) consumer.release();
  }
  consumer.release();
  consumer.arm();
  consumer.disarm();
  if (pop == Pop::kBroken) require(consumer.pop(record) == Pop::kBroken, "broken is final");
}

// The producer's memory is its own but for the tail, which the input sets after some pushes.
void produce(std::span<const std::byte> input) {
  std::vector<Line> lines(kMemoryBytes / sizeof(Line));
  const auto memory = std::as_writable_bytes(std::span(lines));
  format_ring(memory);
  RingProducer producer(memory);
  std::array<std::byte, 2048> payload{};
  for (std::size_t at = 0; at + 10 <= input.size(); at += 10) {
    std::uint16_t size = 0;
    std::memcpy(&size, input.data() + at, sizeof size);
    const std::span<const std::byte> part = std::span(payload).first(size % payload.size());
    const Envelope envelope{.source = {}, .destination = {}, .source_port = static_cast<std::uint16_t>(size % 3)};
    producer.push(envelope, {&part, 1}, static_cast<std::uint32_t>(part.size()), (size & 1) != 0);
    if ((size & 2) != 0) producer.publish();
    std::memcpy(memory.data() + kCacheLine, input.data() + at + 2, sizeof(std::uint64_t));
    producer.take_doorbell();
  }
  producer.publish();
  producer.count_unread();
}

}  // namespace
}  // namespace verbena::host

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  const auto choices = std::to_integer<unsigned>(input[0]);
  if ((choices & 1) == 0) {
    auto lines = verbena::host::memory_of(input.subspan(1));
    verbena::host::consume(std::as_writable_bytes(std::span(lines)), (choices & 2) != 0);
  } else {
    verbena::host::produce(input.subspan(1));
  }
  return 0;
}
