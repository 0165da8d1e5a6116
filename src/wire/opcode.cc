#include "wire/opcode.h"

#include <algorithm>
#include <array>

#include "wire/aeth.h"
#include "wire/atomic_ack_eth.h"
#include "wire/atomic_eth.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/ieth.h"
#include "wire/imm_dt.h"
#include "wire/reth.h"
#include "wire/selective_eth.h"
#include "wire/xrceth.h"

namespace verbena::wire {
namespace {

struct OperationRow {
  std::uint8_t code;  // the lower five bits of the opcode
  std::string_view name;
  Operation operation;
  Place place;
  HeaderSet headers;
  bool has_payload;
};

constexpr HeaderSet kBare;

constexpr std::array kOperationRows{
    OperationRow{0x00, "SEND_FIRST", Operation::kSend, Place::kFirst, kBare, true},
    OperationRow{0x01, "SEND_MIDDLE", Operation::kSend, Place::kMiddle, kBare, true},
    OperationRow{0x02, "SEND_LAST", Operation::kSend, Place::kLast, kBare, true},
    OperationRow{0x03, "SEND_LAST_IMM", Operation::kSend, Place::kLast, HeaderSet(Header::kImmDt), true},
    OperationRow{0x04, "SEND_ONLY", Operation::kSend, Place::kOnly, kBare, true},
    OperationRow{0x05, "SEND_ONLY_IMM", Operation::kSend, Place::kOnly, HeaderSet(Header::kImmDt), true},
    OperationRow{0x06, "WRITE_FIRST", Operation::kWrite, Place::kFirst, HeaderSet(Header::kReth), true},
    OperationRow{0x07, "WRITE_MIDDLE", Operation::kWrite, Place::kMiddle, kBare, true},
    OperationRow{0x08, "WRITE_LAST", Operation::kWrite, Place::kLast, kBare, true},
    OperationRow{0x09, "WRITE_LAST_IMM", Operation::kWrite, Place::kLast, HeaderSet(Header::kImmDt), true},
    OperationRow{0x0a, "WRITE_ONLY", Operation::kWrite, Place::kOnly, HeaderSet(Header::kReth), true},
    OperationRow{0x0b, "WRITE_ONLY_IMM", Operation::kWrite, Place::kOnly, HeaderSet(Header::kReth, Header::kImmDt),
                 true},
    OperationRow{0x0c, "READ_REQUEST", Operation::kReadRequest, Place::kOnly, HeaderSet(Header::kReth), false},
    OperationRow{0x0d, "READ_RESPONSE_FIRST", Operation::kReadResponse, Place::kFirst, HeaderSet(Header::kAeth), true},
    OperationRow{0x0e, "READ_RESPONSE_MIDDLE", Operation::kReadResponse, Place::kMiddle, kBare, true},
    OperationRow{0x0f, "READ_RESPONSE_LAST", Operation::kReadResponse, Place::kLast, HeaderSet(Header::kAeth), true},
    OperationRow{0x10, "READ_RESPONSE_ONLY", Operation::kReadResponse, Place::kOnly, HeaderSet(Header::kAeth), true},
    OperationRow{0x11, "ACKNOWLEDGE", Operation::kAcknowledge, Place::kOnly, HeaderSet(Header::kAeth), false},
    OperationRow{0x12, "ATOMIC_ACKNOWLEDGE", Operation::kAtomicAcknowledge, Place::kOnly,
                 HeaderSet(Header::kAeth, Header::kAtomicAckEth), false},
    OperationRow{0x13, "COMPARE_SWAP", Operation::kCompareSwap, Place::kOnly, HeaderSet(Header::kAtomicEth), false},
    OperationRow{0x14, "FETCH_ADD", Operation::kFetchAdd, Place::kOnly, HeaderSet(Header::kAtomicEth), false},
    OperationRow{0x16, "SEND_LAST_INVALIDATE", Operation::kSend, Place::kLast, HeaderSet(Header::kIeth), true},
    OperationRow{0x17, "SEND_ONLY_INVALIDATE", Operation::kSend, Place::kOnly, HeaderSet(Header::kIeth), true},
    OperationRow{0x1c, "FLUSH", Operation::kFlush, Place::kOnly, HeaderSet(Header::kFeth, Header::kReth), false},
    OperationRow{0x1d, "ATOMIC_WRITE", Operation::kAtomicWrite, Place::kOnly, HeaderSet(Header::kReth), true},
};

constexpr OperationRow kCongestionRow{
    0x01, "CNP", Operation::kCongestion, Place::kOnly, HeaderSet(Header::kCnpReserved), false};

constexpr OperationRow kSelectiveRow{0x11,
                                     "SELECTIVE_ACKNOWLEDGE",
                                     Operation::kSelectiveAcknowledge,
                                     Place::kOnly,
                                     HeaderSet(Header::kAeth, Header::kSelectiveEth),
                                     false};

constexpr std::uint8_t kLastUcCode = 0x0b;

constexpr std::size_t kOpcodes = 256;
constexpr std::size_t kLongestName = 24;

struct Name {
  std::array<char, kLongestName> text{};
  std::size_t size = 0;

  constexpr void append(std::string_view part) noexcept {
    std::copy(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(size));
    size += part.size();
  }
  constexpr std::string_view view() const noexcept { return {text.data(), size}; }
};

struct Tables {
  std::array<OpcodeRow, kOpcodes> rows{};
  std::array<Name, kOpcodes> names{};
};

constexpr bool is_response(Operation operation) noexcept {
  OpcodeRow row;
  row.operation = operation;
  return row.is_response();
}

constexpr std::uint8_t size_with_bth(HeaderSet headers) noexcept {
  struct {
    Header header;
    std::size_t size;
  } constexpr kSizes[] = {
      {Header::kXrceth, Xrceth::kSize},
      {Header::kDeth, Deth::kSize},
      {Header::kFeth, Feth::kSize},
      {Header::kReth, Reth::kSize},
      {Header::kAtomicEth, AtomicEth::kSize},
      {Header::kAeth, Aeth::kSize},
      {Header::kAtomicAckEth, AtomicAckEth::kSize},
      {Header::kImmDt, ImmDt::kSize},
      {Header::kIeth, Ieth::kSize},
      {Header::kCnpReserved, kCnpReservedSize},
      {Header::kSelectiveEth, SelectiveEth::kSize},
  };
  std::size_t size = Bth::kSize;
  for (const auto& entry : kSizes) size += headers.has(entry.header) ? entry.size : 0;
  return static_cast<std::uint8_t>(size);
}

constexpr void add(Tables& tables, Transport transport, std::string_view prefix, const OperationRow& operation,
                   HeaderSet headers) noexcept {
  const std::size_t index = static_cast<std::size_t>(transport) | operation.code;
  tables.names[index].append(prefix);
  tables.names[index].append(operation.name);
  OpcodeRow& row = tables.rows[index];
  row.opcode = static_cast<Opcode>(index);
  row.transport = transport;
  row.operation = operation.operation;
  row.place = operation.place;
  row.headers = headers;
  row.header_size = size_with_bth(headers);
  row.has_payload = operation.has_payload;
}

constexpr Tables make_tables() noexcept {
  Tables tables;
  for (std::size_t index = 0; index < kOpcodes; ++index) tables.rows[index].opcode = static_cast<Opcode>(index);
  for (const OperationRow& row : kOperationRows) {
    add(tables, Transport::kRc, "RC_", row, row.headers);
    // Requests say which shared receive queue they are for; responses do not.
    add(tables, Transport::kXrc, "XRC_", row,
        is_response(row.operation) ? row.headers : row.headers.with(Header::kXrceth));
    if (row.code <= kLastUcCode) add(tables, Transport::kUc, "UC_", row, row.headers);
    if (row.operation == Operation::kSend && row.place == Place::kOnly && row.code <= kLastUcCode) {
      add(tables, Transport::kUd, "UD_", row, row.headers.with(Header::kDeth));
    }
  }
  add(tables, Transport::kCnp, "", kCongestionRow, kCongestionRow.headers);
  add(tables, Transport::kOwn, "", kSelectiveRow, kSelectiveRow.headers);
  return tables;
}

constexpr Tables kTables = make_tables();

// The rows with their names, which can only be referred to once they stand in place.
constexpr std::array<OpcodeRow, kOpcodes> with_names() noexcept {
  std::array<OpcodeRow, kOpcodes> rows = kTables.rows;
  for (std::size_t index = 0; index < kOpcodes; ++index) {
    rows[index].name = rows[index].is_known() ? kTables.names[index].view() : std::string_view("UNKNOWN");
  }
  return rows;
}

constexpr std::array<OpcodeRow, kOpcodes> kRows = with_names();

constexpr std::size_t largest_header_size() noexcept {
  std::size_t largest = 0;
  for (const OpcodeRow& row : kRows) largest = std::max<std::size_t>(largest, row.header_size);
  return largest;
}
static_assert(largest_header_size() == kMaxHeaderSize);

}  // namespace

const OpcodeRow& row_of(Opcode opcode) noexcept {
  return kRows[static_cast<std::uint8_t>(opcode)];
}

}  // namespace verbena::wire
