// How a request becomes packets: where each stands in its message, its headers, and the memory it carries.
#include <algorithm>

#include "engine/limits.h"
#include "engine/request_kind.h"
#include "engine/requester.h"
#include "engine/sge_range.h"

namespace verbena::engine {
namespace {

using wire::Operation;

constexpr std::uint32_t kAcksInWindow = 4;

wire::Place place_of(std::uint32_t packet, std::uint32_t count) noexcept {
  if (count == 1) return wire::Place::kOnly;
  if (packet == 0) return wire::Place::kFirst;
  return packet + 1 == count ? wire::Place::kLast : wire::Place::kMiddle;
}

// Lays headers down one after the other.
class Headers {
 public:
  explicit Headers(std::span<std::byte> room) noexcept : room_(room) {}

  template <class Header>
  void add(const Header& header) noexcept {
    header.encode(room_.subspan(size_).first<Header::kSize>());
    size_ += Header::kSize;
  }
  std::span<const std::byte> bytes() const noexcept { return room_.first(size_); }

 private:
  std::span<std::byte> room_;
  std::size_t size_ = 0;
};

}  // namespace

// The packet at the cursor, which moves behind it. False where its memory is at fault: the request fails.
bool Requester::make_packet(SendWqe& wqe, Transmit& packet) noexcept {
  const RequestKind& kind = *kind_of(wqe.opcode);
  const std::uint32_t number = cursor_.packet;
  if (number == 0 && !is_in_order(wqe)) return false;
  const std::uint32_t end = kind.operation == Operation::kReadRequest ? piece_end(wqe, number) : number + 1;
  if (const auto fault = fill_packet(wqe, number, end, false, packet); fault != MemoryFault::kNone) {
    fail_later(WcStatus::kLocalProtectionError, fault);
    return false;
  }
  cursor_.packet = end;
  if (kind.needs_response) ++cursor_.reads;
  return true;
}

// The packet that stands for [number, end) of its message. `again`: it is repeated out of turn.
MemoryFault Requester::fill_packet(SendWqe& wqe, std::uint32_t number, std::uint32_t end, bool again,
                                   Transmit& packet) const noexcept {
  const RequestKind& kind = *kind_of(wqe.opcode);
  const bool is_flush = kind.operation == Operation::kFlush;
  const std::uint32_t offset = number * connection_.mtu;
  const std::uint32_t size = is_flush ? wqe.length : std::min(wqe.length - offset, (end - number) * connection_.mtu);
  const std::uint32_t payload = kind.reads_locally || is_flush ? 0 : size;
  packet.part_count = 1;
  if (const auto fault = add_payload(wqe, offset, payload, packet); fault != MemoryFault::kNone) return fault;
  const wire::Place place = kind.needs_response ? wire::Place::kOnly : place_of(number, wqe.connected.packet_count);
  const auto headers = make_headers(wqe, number, place, size, payload, again, packet.header);
  complete_packet(connection_, own_, headers, payload, packet);
  return MemoryFault::kNone;
}

// What can be found out about a request before its first packet. False where it fails.
bool Requester::is_in_order(SendWqe& wqe) noexcept {
  if ((wqe.flags & SendWqe::kRefused) != 0) {
    fail_later(WcStatus::kLocalQpOperationError);
    return false;
  }
  if (!is_well_sized(wqe)) {
    fail_later(WcStatus::kLocalLengthError);
    return false;
  }
  if (!kind_of(wqe.opcode)->reads_locally) return true;
  MemoryPieces pieces;
  const auto fault = resolve_range(memory_, domain_, {SendQueue::sges_of(wqe), wqe.sge_count}, 0, wqe.length,
                                   kLocalWrite | kCheckOnly, pieces);
  if (fault == MemoryFault::kNone) return true;
  fail_later(WcStatus::kLocalProtectionError, fault);
  return false;
}

// The headers of a packet, which stands for `size` bytes of its message and carries `payload` of them.
std::span<const std::byte> Requester::make_headers(const SendWqe& wqe, std::uint32_t number, wire::Place place,
                                                   std::uint32_t size, std::uint32_t payload, bool again,
                                                   std::span<std::byte> room) const noexcept {
  const RequestKind& kind = *kind_of(wqe.opcode);
  const ConnectedPart& part = wqe.connected;
  const bool ends = place == wire::Place::kLast || place == wire::Place::kOnly;
  const bool notifies = kind.operation == Operation::kSend || kind.has_immediate;
  wire::Bth bth;
  bth.opcode = wire_opcode(connection_.transport, kind, place);
  bth.solicited = part.solicited && ends && notifies;
  bth.pad_count = wire::pad_count(payload);
  bth.pkey = connection_.pkey;
  bth.destination_qpn = connection_.destination;
  bth.psn = part.first_psn + number;
  bth.migration_request = connection_.repeats_selectively && peer_.mark(bth.psn, bth.destination_qpn);
  bth.ack_request =
      connection_.reliable && (ends || again || (number + 1) % (connection_.window / kAcksInWindow + 1) == 0);

  Headers headers(room);
  headers.add(bth);
  if (connection_.transport == wire::Transport::kXrc) headers.add(wire::Xrceth{part.shared_queue});
  const std::uint64_t remote = part.remote_address + std::uint64_t{number} * connection_.mtu;
  switch (kind.operation) {
    case Operation::kWrite:
      if (number == 0) headers.add(wire::Reth{remote, part.rkey, wqe.length});
      break;
    case Operation::kReadRequest:
    case Operation::kAtomicWrite:
      headers.add(wire::Reth{remote, part.rkey, size});
      break;
    case Operation::kFlush:
      headers.add(wire::Feth{static_cast<std::uint8_t>(part.immediate & 0xf),
                             static_cast<std::uint8_t>((part.immediate >> 4) & 0x3)});
      headers.add(wire::Reth{remote, part.rkey, size});
      break;
    case Operation::kCompareSwap:
      headers.add(wire::AtomicEth{part.remote_address, part.rkey, part.swap, part.compare_add});
      break;
    case Operation::kFetchAdd:
      headers.add(wire::AtomicEth{part.remote_address, part.rkey, part.compare_add, 0});
      break;
    case Operation::kSend:
    case Operation::kReadResponse:
    case Operation::kAcknowledge:
    case Operation::kAtomicAcknowledge:
    case Operation::kCongestion:
    case Operation::kSelectiveAcknowledge:
      break;
  }
  if (ends && kind.has_immediate) headers.add(wire::ImmDt{part.immediate});
  if (ends && kind.has_invalidate) headers.add(wire::Ieth{MemoryKey(part.immediate)});
  return headers.bytes();
}

// An atomic is of eight bytes, and no message is longer than 2 GiB (section 9.7.4.1.5 and table 41).
bool Requester::is_well_sized(const SendWqe& wqe) const noexcept {
  switch (wqe.opcode) {
    case SendOpcode::kCompareSwap:
    case SendOpcode::kFetchAdd:
    case SendOpcode::kAtomicWrite:
      return wqe.length == sizeof(std::uint64_t);
    case SendOpcode::kRdmaWrite:
    case SendOpcode::kRdmaWriteWithImmediate:
    case SendOpcode::kSend:
    case SendOpcode::kSendWithImmediate:
    case SendOpcode::kRdmaRead:
    case SendOpcode::kLocalInvalidate:
    case SendOpcode::kBindMemoryWindow:
    case SendOpcode::kSendWithInvalidate:
    case SendOpcode::kSegmentedSend:
    case SendOpcode::kFlush:
      return wqe.length <= kMaxMessage;
  }
  return false;
}

MemoryFault Requester::add_payload(SendWqe& wqe, std::uint32_t offset, std::uint32_t size,
                                   Transmit& packet) const noexcept {
  if (size == 0) return MemoryFault::kNone;
  if ((wqe.flags & SendWqe::kInline) != 0) {
    packet.parts[packet.part_count++] = {SendQueue::inline_data_of(wqe) + offset, size};
    return MemoryFault::kNone;
  }
  MemoryPieces pieces;
  const auto fault =
      resolve_range(memory_, domain_, {SendQueue::sges_of(wqe), wqe.sge_count}, offset, size, kLocalRead, pieces);
  if (fault != MemoryFault::kNone) return fault;
  for (const MemoryPiece& part : pieces.list()) packet.parts[packet.part_count++] = part.bytes();
  return MemoryFault::kNone;
}

}  // namespace verbena::engine
