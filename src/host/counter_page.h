// The counters of a process in one piece of shared memory that explains itself: whoever maps it read only needs no
// table of ours to print it.
//
//   head      magic 8 | version 4 | page bytes 4 | pid 4 | blocks 4 | start time 8 (ns since 1970) | zero to 64
//             process name 64
//   then, `blocks` times:
//     block   name 64
//             rows 4 | bytes of the whole block 4 | ended 4 | sequence 4 | zero to 64
//     row     name 48 | unit 15 | side 1                     `rows` times
//     value   8 bytes, host order                            `rows` times, then zero to 64
//
// Strings are padded with NUL and always end with one. A block is written first, then `blocks` is stored with release.
// A block whose `ended` is 1 counts no more: its last values stay until another of as many rows takes its place, during
// which `sequence` is odd; who reads it reads `sequence` before and after. Values are relaxed atomics: each is exact,
// together they are no snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counter.h"
#include "verbena/result.h"

namespace verbena::host {

inline constexpr std::size_t kCounterPageBytes = std::size_t{1} << 16;
inline constexpr std::size_t kMaxCounterName = 47;
inline constexpr std::size_t kMaxBlockName = 63;

// The values of one block, in the order of its rows.
//
// Thread-safety: any thread may call anything.
// Ownership:     points into the page, which outlives it.
class CounterBlock {
 public:
  CounterBlock() noexcept = default;
  explicit CounterBlock(std::span<std::uint64_t> values) noexcept : values_(values) {}

  std::size_t size() const noexcept { return values_.size(); }
  // For rows that several threads write. Out-of-range rows are ignored.
  void add(std::size_t row, std::uint64_t how_many = 1) noexcept;
  // For rows that are gauges.
  void set(std::size_t row, std::uint64_t value) noexcept;
  std::uint64_t value(std::size_t row) const noexcept;

 private:
  friend class CounterPageWriter;

  std::span<std::uint64_t> values_;
};

struct CounterPageOwner {
  std::uint32_t pid = 0;
  std::int64_t start_time_ns = 0;  // since 1970
  std::string_view process_name;   // cut where too long
};

// Writes a page. Thread-safety: none; one owner at a time (the blocks it gives out are free-threaded).
class CounterPageWriter {
 public:
  // Requires: `memory` is zeroed, aligned to a cache line and at least 4096 bytes; it outlives this.
  CounterPageWriter(std::span<std::byte> memory, const CounterPageOwner& owner) noexcept;

  // A block of counters, all zero; or, where a block of this name with as many rows is there already, that one as it
  // stands: a device that is closed and opened again goes on counting. kExhausted where the page is full,
  // kInvalidArgument for a name that is empty or too long.
  Result<CounterBlock> add_block(std::string_view name, std::span<const CounterRow> rows);
  // What it counted has ended. From then on it may be given to another: the block is not to be used any more.
  void end_block(const CounterBlock& block) noexcept;

 private:
  std::byte* find_block(std::string_view name, std::size_t rows) noexcept;
  std::byte* find_ended(std::size_t rows) noexcept;

  std::span<std::byte> memory_;
  std::size_t used_ = 0;
  std::uint32_t blocks_ = 0;
};

struct CounterReading {
  std::string name;
  std::string unit;
  Side side = Side::kBoth;
  std::uint64_t value = 0;
};

struct CounterBlockReading {
  std::string name;
  std::vector<CounterReading> rows;
  bool ended = false;  // these are its last values
};

struct CounterPageReading {
  std::uint32_t pid = 0;
  std::int64_t start_time_ns = 0;
  std::string process_name;
  std::vector<CounterBlockReading> blocks;
};

// Copies a page that another process may be writing. Any content is survived; kInvalidArgument says what is wrong
// with one that is not a counter page. Requires: `memory` aligned to 8 bytes.
Result<CounterPageReading> read_counter_page(std::span<const std::byte> memory);

}  // namespace verbena::host
