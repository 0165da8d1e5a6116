#include "engine/request_kind.h"

#include <array>

namespace verbena::engine {
namespace {

using wire::Operation;

constexpr std::array<RequestKind, 12> kKinds{{
    {.opcode = SendOpcode::kRdmaWrite,
     .operation = Operation::kWrite,
     .completion = WcOpcode::kRdmaWrite,
     .on_unreliable = true},
    {.opcode = SendOpcode::kRdmaWriteWithImmediate,
     .operation = Operation::kWrite,
     .completion = WcOpcode::kRdmaWrite,
     .has_immediate = true,
     .on_unreliable = true},
    {.opcode = SendOpcode::kSend, .operation = Operation::kSend, .completion = WcOpcode::kSend, .on_unreliable = true},
    {.opcode = SendOpcode::kSendWithImmediate,
     .operation = Operation::kSend,
     .completion = WcOpcode::kSend,
     .has_immediate = true,
     .on_unreliable = true},
    {.opcode = SendOpcode::kRdmaRead,
     .operation = Operation::kReadRequest,
     .completion = WcOpcode::kRdmaRead,
     .needs_response = true,
     .reads_locally = true},
    {.opcode = SendOpcode::kCompareSwap,
     .operation = Operation::kCompareSwap,
     .completion = WcOpcode::kCompareSwap,
     .needs_response = true,
     .reads_locally = true},
    {.opcode = SendOpcode::kFetchAdd,
     .operation = Operation::kFetchAdd,
     .completion = WcOpcode::kFetchAdd,
     .needs_response = true,
     .reads_locally = true},
    {.opcode = SendOpcode::kLocalInvalidate,
     .completion = WcOpcode::kLocalInvalidate,
     .local = true,
     .on_unreliable = true},
    {.opcode = SendOpcode::kBindMemoryWindow,
     .completion = WcOpcode::kBindMemoryWindow,
     .local = true,
     .on_unreliable = true},
    {.opcode = SendOpcode::kSendWithInvalidate,
     .operation = Operation::kSend,
     .completion = WcOpcode::kSend,
     .has_invalidate = true},
    {.opcode = SendOpcode::kFlush,
     .operation = Operation::kFlush,
     .completion = WcOpcode::kFlush,
     .needs_response = true},
    {.opcode = SendOpcode::kAtomicWrite,
     .operation = Operation::kAtomicWrite,
     .completion = WcOpcode::kAtomicWrite,
     .needs_response = true},
}};

// By opcode.
constexpr auto kByOpcode = [] {
  std::array<const RequestKind*, 16> table{};
  for (const RequestKind& kind : kKinds) table[static_cast<std::size_t>(kind.opcode)] = &kind;
  return table;
}();

// The lower five bits of the opcodes of each place, where the operation has one.
constexpr std::uint8_t code_of(const RequestKind& kind, wire::Place place) noexcept {
  const bool send = kind.operation == Operation::kSend;
  const std::uint8_t base = send ? 0x00 : 0x06;
  const std::uint8_t immediate = kind.has_immediate ? 1 : 0;
  switch (place) {
    case wire::Place::kFirst:
      return base;
    case wire::Place::kMiddle:
      return static_cast<std::uint8_t>(base + 1);
    case wire::Place::kLast:
      return kind.has_invalidate ? 0x16 : static_cast<std::uint8_t>(base + 2 + immediate);
    case wire::Place::kOnly:
      return kind.has_invalidate ? 0x17 : static_cast<std::uint8_t>(base + 4 + immediate);
  }
  return base;
}

}  // namespace

const RequestKind* kind_of(SendOpcode opcode) noexcept {
  const auto index = static_cast<std::size_t>(opcode);
  return index < kByOpcode.size() ? kByOpcode[index] : nullptr;
}

bool takes(QpType type, SendOpcode opcode) noexcept {
  const RequestKind* kind = kind_of(opcode);
  if (kind == nullptr) return false;
  switch (type) {
    case QpType::kRc:
    case QpType::kXrcSend:
      return true;
    case QpType::kUc:
      return kind->on_unreliable;
    case QpType::kUd:
    case QpType::kRawPacket:
    case QpType::kXrcReceive:
      return false;
  }
  return false;
}

wire::Opcode wire_opcode(wire::Transport transport, const RequestKind& kind, wire::Place place) noexcept {
  const auto of = [transport](std::uint8_t code) {
    return static_cast<wire::Opcode>(static_cast<std::uint8_t>(transport) | code);
  };
  switch (kind.operation) {
    case Operation::kSend:
    case Operation::kWrite:
      return of(code_of(kind, place));
    case Operation::kReadRequest:
      return of(0x0c);
    case Operation::kCompareSwap:
      return of(0x13);
    case Operation::kFetchAdd:
      return of(0x14);
    case Operation::kFlush:
      return of(0x1c);
    case Operation::kAtomicWrite:
      return of(0x1d);
    case Operation::kReadResponse:
    case Operation::kAcknowledge:
    case Operation::kAtomicAcknowledge:
    case Operation::kCongestion:
    case Operation::kSelectiveAcknowledge:
      break;
  }
  return of(0);
}

}  // namespace verbena::engine
