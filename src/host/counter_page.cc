#include "host/counter_page.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace verbena::host {
namespace {

constexpr std::uint64_t kMagic = 0x565242434f554e54;  // "VRBCOUNT"
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kLine = 64;

struct PageLayout {
  static constexpr std::size_t kMagicAt = 0;
  static constexpr std::size_t kVersionAt = 8;
  static constexpr std::size_t kBytesAt = 12;
  static constexpr std::size_t kPidAt = 16;
  static constexpr std::size_t kBlocksAt = 20;
  static constexpr std::size_t kStartAt = 24;
  static constexpr std::size_t kNameAt = kLine;
  static constexpr std::size_t kNameBytes = 64;
  static constexpr std::size_t kHeadBytes = kNameAt + kNameBytes;
};

struct BlockLayout {
  static constexpr std::size_t kNameAt = 0;
  static constexpr std::size_t kNameBytes = kMaxBlockName + 1;
  static constexpr std::size_t kRowsAt = kNameAt + kNameBytes;
  static constexpr std::size_t kBytesAt = kRowsAt + 4;
  static constexpr std::size_t kEndedAt = kBytesAt + 4;
  static constexpr std::size_t kSequenceAt = kEndedAt + 4;
  static constexpr std::size_t kHeadBytes = 2 * kLine;
};

struct RowLayout {
  static constexpr std::size_t kNameAt = 0;
  static constexpr std::size_t kNameBytes = kMaxCounterName + 1;
  static constexpr std::size_t kUnitAt = kNameAt + kNameBytes;
  static constexpr std::size_t kUnitBytes = 15;
  static constexpr std::size_t kSideAt = kUnitAt + kUnitBytes;
  static constexpr std::size_t kBytes = kSideAt + 1;
  static_assert(kBytes == kLine);
};

constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
  return (bytes + kLine - 1) / kLine * kLine;
}

constexpr std::size_t values_at(std::size_t rows) noexcept {
  return BlockLayout::kHeadBytes + rows * RowLayout::kBytes;
}

constexpr std::size_t block_bytes(std::size_t rows) noexcept {
  return values_at(rows) + whole_lines(rows * sizeof(std::uint64_t));
}

template <class Number>
void put(std::byte* at, Number number) noexcept {
  std::memcpy(at, &number, sizeof number);
}

template <class Number>
Number get(const std::byte* at) noexcept {
  Number number{};
  std::memcpy(&number, at, sizeof number);
  return number;
}

bool is_readable(char character) noexcept {
  return character >= ' ' && character <= '~';
}

// A name of somebody's choice must not make the whole page unreadable.
char shown(char character) noexcept {
  return is_readable(character) ? character : '?';
}

void put_text(std::byte* at, std::size_t field_bytes, std::string_view text) noexcept {
  text = text.substr(0, field_bytes - 1);  // the memory was zero before
  std::transform(text.begin(), text.end(), at, [](char character) { return static_cast<std::byte>(shown(character)); });
}

// The text of a field, or nothing where it does not end or holds what a terminal should not see.
std::optional<std::string> get_text(const std::byte* at, std::size_t field_bytes) {
  std::string text;
  for (std::size_t i = 0; i < field_bytes; ++i) {
    const auto character = static_cast<char>(at[i]);
    if (character == '\0') return text;
    if (!is_readable(character)) return std::nullopt;
    text += character;
  }
  return std::nullopt;
}

// A read-only page cannot be an atomic_ref before C++26; the built-in is the same load.
template <class Number>
Number load(const std::byte* at, int order) noexcept {
  return order == __ATOMIC_ACQUIRE ? __atomic_load_n(reinterpret_cast<const Number*>(at), __ATOMIC_ACQUIRE)
                                   : __atomic_load_n(reinterpret_cast<const Number*>(at), __ATOMIC_RELAXED);
}

std::span<std::uint64_t> values_of(std::byte* block, std::size_t rows) noexcept {
  return {reinterpret_cast<std::uint64_t*>(block + values_at(rows)), rows};
}

tl::unexpected<Error> not_a_page(const char* what) {
  return failure(ErrorCode::kInvalidArgument, std::string("Not a counter page: ") + what + ".");
}

Result<CounterBlockReading> read_rows(std::span<const std::byte> rest, std::size_t rows) {
  CounterBlockReading block;
  auto name = get_text(rest.data() + BlockLayout::kNameAt, BlockLayout::kNameBytes);
  if (!name || name->empty()) return not_a_page("a block has no readable name");
  block.name = std::move(*name);
  block.ended = load<std::uint32_t>(rest.data() + BlockLayout::kEndedAt, __ATOMIC_RELAXED) != 0;
  block.rows.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::byte* row = rest.data() + BlockLayout::kHeadBytes + i * RowLayout::kBytes;
    auto row_name = get_text(row + RowLayout::kNameAt, RowLayout::kNameBytes);
    auto unit = get_text(row + RowLayout::kUnitAt, RowLayout::kUnitBytes);
    const auto side = get<std::uint8_t>(row + RowLayout::kSideAt);
    if (!row_name || row_name->empty() || !unit) return not_a_page("a row has no readable name");
    if (side > static_cast<std::uint8_t>(Side::kBoth)) return not_a_page("a row has an unknown side");
    const auto value = load<std::uint64_t>(rest.data() + values_at(rows) + i * sizeof(std::uint64_t), __ATOMIC_RELAXED);
    block.rows.push_back({std::move(*row_name), std::move(*unit), static_cast<Side>(side), value});
  }
  return block;
}

// How many rows a block has, and so how long it is: that never changes, whatever is in it.
Result<std::size_t> rows_of_block(std::span<const std::byte> rest) {
  if (rest.size() < BlockLayout::kHeadBytes) return not_a_page("a block is cut off");
  const std::size_t rows = get<std::uint32_t>(rest.data() + BlockLayout::kRowsAt);
  const std::size_t bytes = get<std::uint32_t>(rest.data() + BlockLayout::kBytesAt);
  if (rows > rest.size() / RowLayout::kBytes) return not_a_page("a block has more rows than the page");
  if (bytes != block_bytes(rows) || bytes > rest.size()) return not_a_page("a block has an impossible length");
  return rows;
}

// ThreadSanitizer knows no stand-alone fence; it does not model the order in question either.
void fence(std::memory_order order) noexcept {
#if defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(order);
#else
  std::atomic_thread_fence(order);
#endif
}

// Nothing where it is just being given to another.
Result<std::optional<CounterBlockReading>> read_block(std::span<const std::byte> block, std::size_t rows) {
  constexpr int kTries = 3;
  const std::byte* sequence = block.data() + BlockLayout::kSequenceAt;
  for (int i = 0; i < kTries; ++i) {
    const auto before = load<std::uint32_t>(sequence, __ATOMIC_ACQUIRE);  // pairs with take_over()
    if (before % 2 != 0) continue;
    auto reading = read_rows(block, rows);
    fence(std::memory_order_acquire);
    if (load<std::uint32_t>(sequence, __ATOMIC_RELAXED) != before) continue;
    if (!reading) return tl::make_unexpected(reading.error());
    return std::optional(std::move(*reading));
  }
  return std::optional<CounterBlockReading>();
}

void store(std::byte* at, std::uint32_t value, std::memory_order order) noexcept {
  std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at)).store(value, order);
}

void write_block(std::byte* block, std::string_view name, std::span<const CounterRow> rows) noexcept {
  put_text(block + BlockLayout::kNameAt, BlockLayout::kNameBytes, name);
  put(block + BlockLayout::kRowsAt, static_cast<std::uint32_t>(rows.size()));
  put(block + BlockLayout::kBytesAt, static_cast<std::uint32_t>(block_bytes(rows.size())));
  std::byte* at = block + BlockLayout::kHeadBytes;
  for (const auto& row : rows) {
    put_text(at + RowLayout::kNameAt, RowLayout::kNameBytes, row.name);
    put_text(at + RowLayout::kUnitAt, RowLayout::kUnitBytes, row.unit);
    put(at + RowLayout::kSideAt, static_cast<std::uint8_t>(row.side));
    at += RowLayout::kBytes;
  }
}

// Of an ended block, for another.
void take_over(std::byte* block, std::string_view name, std::span<const CounterRow> rows) noexcept {
  const auto sequence = get<std::uint32_t>(block + BlockLayout::kSequenceAt);
  store(block + BlockLayout::kSequenceAt, sequence + 1, std::memory_order_relaxed);
  fence(std::memory_order_release);  // pairs with the fence in read_block()
  std::memset(block + BlockLayout::kNameAt, 0, BlockLayout::kNameBytes);
  std::memset(block + BlockLayout::kHeadBytes, 0, block_bytes(rows.size()) - BlockLayout::kHeadBytes);
  write_block(block, name, rows);
  store(block + BlockLayout::kEndedAt, 0, std::memory_order_relaxed);
  store(block + BlockLayout::kSequenceAt, sequence + 2, std::memory_order_release);
}

}  // namespace

void CounterBlock::add(std::size_t row, std::uint64_t how_many) noexcept {
  if (row >= values_.size()) return;
  std::atomic_ref<std::uint64_t>(values_[row]).fetch_add(how_many, std::memory_order_relaxed);
}

void CounterBlock::set(std::size_t row, std::uint64_t value) noexcept {
  if (row >= values_.size()) return;
  std::atomic_ref<std::uint64_t>(values_[row]).store(value, std::memory_order_relaxed);
}

std::uint64_t CounterBlock::value(std::size_t row) const noexcept {
  if (row >= values_.size()) return 0;
  return std::atomic_ref<std::uint64_t>(values_[row]).load(std::memory_order_relaxed);
}

CounterPageWriter::CounterPageWriter(std::span<std::byte> memory, const CounterPageOwner& owner) noexcept
    : memory_(memory), used_(PageLayout::kHeadBytes) {
  std::byte* page = memory_.data();
  put(page + PageLayout::kVersionAt, kVersion);
  put(page + PageLayout::kBytesAt, static_cast<std::uint32_t>(memory_.size()));
  put(page + PageLayout::kPidAt, owner.pid);
  put(page + PageLayout::kStartAt, owner.start_time_ns);
  put_text(page + PageLayout::kNameAt, PageLayout::kNameBytes, owner.process_name);
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page + PageLayout::kMagicAt))
      .store(kMagic, std::memory_order_release);  // pairs with read_counter_page()
}

std::byte* CounterPageWriter::find_block(std::string_view name, std::size_t rows) noexcept {
  std::byte* at = memory_.data() + PageLayout::kHeadBytes;
  for (std::uint32_t i = 0; i < blocks_; ++i) {
    const auto has_rows = get<std::uint32_t>(at + BlockLayout::kRowsAt);
    const std::string_view there(reinterpret_cast<const char*>(at + BlockLayout::kNameAt));
    const bool same = std::equal(there.begin(), there.end(), name.begin(), name.end(),
                                 [](char stored, char wanted) { return stored == shown(wanted); });
    if (has_rows == rows && same) return at;
    at += get<std::uint32_t>(at + BlockLayout::kBytesAt);
  }
  return nullptr;
}

std::byte* CounterPageWriter::find_ended(std::size_t rows) noexcept {
  std::byte* at = memory_.data() + PageLayout::kHeadBytes;
  for (std::uint32_t i = 0; i < blocks_; ++i) {
    const bool ended = get<std::uint32_t>(at + BlockLayout::kEndedAt) != 0;
    if (ended && get<std::uint32_t>(at + BlockLayout::kRowsAt) == rows) return at;
    at += get<std::uint32_t>(at + BlockLayout::kBytesAt);
  }
  return nullptr;
}

void CounterPageWriter::end_block(const CounterBlock& block) noexcept {
  std::byte* at = memory_.data() + PageLayout::kHeadBytes;
  for (std::uint32_t i = 0; i < blocks_; ++i) {
    const std::span<std::uint64_t> values = values_of(at, get<std::uint32_t>(at + BlockLayout::kRowsAt));
    if (values.data() == block.values_.data()) store(at + BlockLayout::kEndedAt, 1, std::memory_order_relaxed);
    at += get<std::uint32_t>(at + BlockLayout::kBytesAt);
  }
}

Result<CounterBlock> CounterPageWriter::add_block(std::string_view name, std::span<const CounterRow> rows) {
  if (name.empty() || name.size() > kMaxBlockName) {
    return failure(ErrorCode::kInvalidArgument, "The name of a block of counters has 1 to 63 characters.");
  }
  std::byte* found = find_block(name, rows.size());
  const bool goes_on = found != nullptr && get<std::uint32_t>(found + BlockLayout::kEndedAt) == 0;
  if (found == nullptr) found = find_ended(rows.size());
  if (found != nullptr) {
    if (!goes_on) take_over(found, name, rows);
    return CounterBlock(values_of(found, rows.size()));
  }
  const std::size_t bytes = block_bytes(rows.size());
  if (bytes > memory_.size() - used_) {
    return failure(ErrorCode::kExhausted, "The counter page has no room for the counters of " + std::string(name) +
                                              ". They are not visible from outside.");
  }
  std::byte* block = memory_.data() + used_;
  write_block(block, name, rows);
  used_ += bytes;
  ++blocks_;
  std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(memory_.data() + PageLayout::kBlocksAt))
      .store(blocks_, std::memory_order_release);  // pairs with read_counter_page()
  return CounterBlock(values_of(block, rows.size()));
}

Result<CounterPageReading> read_counter_page(std::span<const std::byte> memory) {
  if (memory.size() < PageLayout::kHeadBytes) return not_a_page("too short");
  const std::byte* page = memory.data();
  if (load<std::uint64_t>(page + PageLayout::kMagicAt, __ATOMIC_ACQUIRE) != kMagic) return not_a_page("wrong magic");
  if (get<std::uint32_t>(page + PageLayout::kVersionAt) != kVersion) return not_a_page("another version");
  if (get<std::uint32_t>(page + PageLayout::kBytesAt) != memory.size()) return not_a_page("wrong length");
  CounterPageReading reading;
  reading.pid = get<std::uint32_t>(page + PageLayout::kPidAt);
  reading.start_time_ns = get<std::int64_t>(page + PageLayout::kStartAt);
  auto name = get_text(page + PageLayout::kNameAt, PageLayout::kNameBytes);
  if (!name) return not_a_page("no readable process name");
  reading.process_name = std::move(*name);
  const auto blocks = load<std::uint32_t>(page + PageLayout::kBlocksAt, __ATOMIC_ACQUIRE);
  auto rest = memory.subspan(PageLayout::kHeadBytes);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const auto rows = rows_of_block(rest);
    if (!rows) return tl::make_unexpected(rows.error());
    auto block = read_block(rest, *rows);
    if (!block) return tl::make_unexpected(block.error());
    if (*block) reading.blocks.push_back(std::move(**block));
    rest = rest.subspan(block_bytes(*rows));
  }
  return reading;
}

}  // namespace verbena::host
