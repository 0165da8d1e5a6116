// The BTH opcodes and what follows each on the wire (InfiniBand Architecture volume 1, section 9.2.1;
// FLUSH and ATOMIC WRITE from annex A19; CNP from annex A17).
//
// An opcode is a transport (upper three bits) and an operation (lower five). One table of operations says which headers
// follow; the table of opcodes is computed from it. What is not in the table is an unknown opcode: reliable datagrams
// (0x40), which no device implements, and the reserved codes. Of the codes that the specification leaves to
// manufacturers (0xc0 to 0xff) one is used, between two ends that both have said so.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbena::wire {

enum class Opcode : std::uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle,
  kRcSendLast,
  kRcSendLastImm,
  kRcSendOnly,
  kRcSendOnlyImm,
  kRcWriteFirst,
  kRcWriteMiddle,
  kRcWriteLast,
  kRcWriteLastImm,
  kRcWriteOnly,
  kRcWriteOnlyImm,
  kRcReadRequest,
  kRcReadResponseFirst,
  kRcReadResponseMiddle,
  kRcReadResponseLast,
  kRcReadResponseOnly,
  kRcAcknowledge,
  kRcAtomicAcknowledge,
  kRcCompareSwap,
  kRcFetchAdd,
  kRcSendLastInvalidate = 0x16,
  kRcSendOnlyInvalidate,
  kRcFlush = 0x1c,
  kRcAtomicWrite,

  kUcSendFirst = 0x20,
  kUcSendMiddle,
  kUcSendLast,
  kUcSendLastImm,
  kUcSendOnly,
  kUcSendOnlyImm,
  kUcWriteFirst,
  kUcWriteMiddle,
  kUcWriteLast,
  kUcWriteLastImm,
  kUcWriteOnly,
  kUcWriteOnlyImm,

  kUdSendOnly = 0x64,
  kUdSendOnlyImm,

  kCnp = 0x81,

  kXrcSendFirst = 0xa0,
  kXrcSendMiddle,
  kXrcSendLast,
  kXrcSendLastImm,
  kXrcSendOnly,
  kXrcSendOnlyImm,
  kXrcWriteFirst,
  kXrcWriteMiddle,
  kXrcWriteLast,
  kXrcWriteLastImm,
  kXrcWriteOnly,
  kXrcWriteOnlyImm,
  kXrcReadRequest,
  kXrcReadResponseFirst,
  kXrcReadResponseMiddle,
  kXrcReadResponseLast,
  kXrcReadResponseOnly,
  kXrcAcknowledge,
  kXrcAtomicAcknowledge,
  kXrcCompareSwap,
  kXrcFetchAdd,
  kXrcSendLastInvalidate = 0xb6,
  kXrcSendOnlyInvalidate,
  kXrcFlush = 0xbc,
  kXrcAtomicWrite,

  kSelectiveAcknowledge = 0xd1,
};

// The value is the upper three bits of the opcode, in place.
enum class Transport : std::uint8_t { kRc = 0x00, kUc = 0x20, kUd = 0x60, kCnp = 0x80, kXrc = 0xa0, kOwn = 0xc0 };

enum class Operation : std::uint8_t {
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAcknowledge,
  kAtomicAcknowledge,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kAtomicWrite,
  kCongestion,
  kSelectiveAcknowledge,
};

// Where a packet stands in its message.
enum class Place : std::uint8_t { kFirst, kMiddle, kLast, kOnly };

// The headers that may follow the BTH. Their order here is their order on the wire.
enum class Header : std::uint8_t {
  kXrceth,
  kDeth,
  kFeth,
  kReth,
  kAtomicEth,
  kAeth,
  kAtomicAckEth,
  kImmDt,
  kIeth,
  kCnpReserved,  // the 16 zero bytes of a CNP
  kSelectiveEth,
};

inline constexpr std::size_t kCnpReservedSize = 16;

class HeaderSet {
 public:
  constexpr HeaderSet() noexcept = default;
  constexpr explicit HeaderSet(std::same_as<Header> auto... headers) noexcept : bits_((0U | ... | bit(headers))) {}

  constexpr bool has(Header header) const noexcept { return (bits_ & bit(header)) != 0; }
  constexpr HeaderSet with(Header header) const noexcept {
    HeaderSet more = *this;
    more.bits_ |= bit(header);
    return more;
  }
  friend constexpr bool operator==(HeaderSet, HeaderSet) noexcept = default;

 private:
  static constexpr std::uint32_t bit(Header header) noexcept { return 1U << static_cast<unsigned>(header); }

  std::uint32_t bits_ = 0;
};

struct OpcodeRow {
  std::string_view name{};  // "RC_SEND_ONLY_IMM"
  Opcode opcode{};
  Transport transport{};
  Operation operation{};
  Place place{};
  HeaderSet headers{};           // what follows the BTH
  std::uint8_t header_size = 0;  // BTH and what follows it, in bytes; 0 marks the row of an unknown opcode
  bool has_payload = false;      // by the specification; a decoder does not refuse a payload elsewhere

  constexpr bool is_known() const noexcept { return header_size != 0; }
  constexpr bool carries_immediate() const noexcept { return headers.has(Header::kImmDt); }
  constexpr bool carries_invalidate() const noexcept { return headers.has(Header::kIeth); }
  constexpr bool starts_message() const noexcept { return place == Place::kFirst || place == Place::kOnly; }
  constexpr bool ends_message() const noexcept { return place == Place::kLast || place == Place::kOnly; }
  // Travels from responder to requester.
  constexpr bool is_response() const noexcept {
    return operation == Operation::kReadResponse || operation == Operation::kAcknowledge ||
           operation == Operation::kAtomicAcknowledge || operation == Operation::kSelectiveAcknowledge;
  }
  constexpr bool is_request() const noexcept { return !is_response() && operation != Operation::kCongestion; }
};

// The row of any byte that may stand in a BTH. Requires nothing; ask is_known() of what comes from the network.
const OpcodeRow& row_of(Opcode opcode) noexcept;

// The largest header_size of any row.
inline constexpr std::size_t kMaxHeaderSize = 44;

}  // namespace verbena::wire
