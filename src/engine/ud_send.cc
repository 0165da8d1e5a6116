// How a datagram queue pair sends: one packet for each request, its headers encoded when it is posted (InfiniBand
// Architecture volume 1, sections 9.8.3 and 10.2.5).
#include <algorithm>
#include <cstring>

#include "engine/queue_pair.h"
#include "wire/packet.h"

namespace verbena::engine {
namespace {

// A Q_Key with this bit in a request means: that of the queue pair (section 10.2.5).
constexpr std::uint32_t kOwnQkey = 0x80000000;

}  // namespace

// An address handle is of one protection domain, and of one port, which the device enforces
// (IBV_DEVICE_UD_AV_PORT_ENFORCE; section 11.2.1.2).
bool QueuePair::may_use(const AddressHandle& address) const noexcept {
  return address.domain == domain_ && address.vector.port == port_;
}

SendVerdict QueuePair::verdict_on_datagram(const SendRequest& request) const noexcept {
  switch (request.opcode) {
    case SendOpcode::kSend:
    case SendOpcode::kSendWithImmediate:
      if (request.address == nullptr) return SendVerdict::kRefuse;
      return may_use(*request.address) ? SendVerdict::kAccept : SendVerdict::kFailLater;
    // Operations of other services: hardware finds out when their turn comes.
    case SendOpcode::kRdmaWrite:
    case SendOpcode::kRdmaWriteWithImmediate:
    case SendOpcode::kRdmaRead:
    case SendOpcode::kCompareSwap:
    case SendOpcode::kFetchAdd:
    case SendOpcode::kAtomicWrite:
      return SendVerdict::kFailLater;
    case SendOpcode::kLocalInvalidate:
    case SendOpcode::kBindMemoryWindow:
    case SendOpcode::kSendWithInvalidate:
    case SendOpcode::kSegmentedSend:
    case SendOpcode::kFlush:
      return SendVerdict::kRefuse;
  }
  return SendVerdict::kRefuse;
}

void QueuePair::encode_ud(const SendRequest& request, SendWqe& wqe) noexcept {
  const AddressHandle& address = *request.address;
  wqe.datagram.envelope = address.envelope;
  if (wqe.datagram.envelope.source_port == 0) wqe.datagram.envelope.source_port = source_port_;
  wqe.byte_period = address.byte_period;
  wqe.datagram.destination_qpn = Qpn(request.remote_qpn);

  const bool has_immediate = request.opcode == SendOpcode::kSendWithImmediate;
  wire::Bth bth;
  bth.opcode = has_immediate ? wire::Opcode::kUdSendOnlyImm : wire::Opcode::kUdSendOnly;
  bth.solicited = (request.flags & kSendSolicited) != 0;
  bth.pad_count = wire::pad_count(wqe.length);
  bth.pkey = pkey();
  bth.destination_qpn = wqe.datagram.destination_qpn;
  bth.psn = next_psn_;
  ++next_psn_;
  wire::Deth deth;
  deth.qkey = (request.remote_qkey & kOwnQkey) != 0 ? qkey_ : Qkey(request.remote_qkey);
  deth.source_qpn = qpn_;

  const std::span header(wqe.datagram.header);
  constexpr std::size_t kDatagramHeaders = wire::Bth::kSize + wire::Deth::kSize;
  bth.encode(header.first<wire::Bth::kSize>());
  deth.encode(header.subspan<wire::Bth::kSize, wire::Deth::kSize>());
  wqe.datagram.header_size = kDatagramHeaders;
  if (has_immediate) {
    wire::ImmDt{request.immediate}.encode(header.subspan<kDatagramHeaders, wire::ImmDt::kSize>());
    wqe.datagram.header_size += wire::ImmDt::kSize;
  }
}

bool QueuePair::begin_ud(Instant now, Transmit& packet) noexcept {
  SendWqe& wqe = send_queue_.next();
  if ((wqe.flags & SendWqe::kRefused) != 0) [[unlikely]] {
    return stop_sending(WcStatus::kLocalQpOperationError, MemoryFault::kNone);
  }
  if (wqe.length > mtu_) [[unlikely]]
    return stop_sending(WcStatus::kLocalLengthError, MemoryFault::kNone);
  if (wqe.byte_period != 0 && !pacer_.may_send(now)) return false;
  if (const MemoryFault fault = gather(wqe, packet); fault != MemoryFault::kNone) [[unlikely]] {
    return stop_sending(WcStatus::kLocalProtectionError, fault);
  }
  packet.envelope = &wqe.datagram.envelope;
  packet.source_qpn = qpn_;
  packet.destination_qpn = wqe.datagram.destination_qpn;
  packet.payload_size = wqe.length;
  const std::uint8_t pad = wire::pad_count(wqe.length);
  if (pad != 0) packet.parts[packet.part_count++] = wire::pad_bytes(wqe.length);
  packet.size = wqe.datagram.header_size + wqe.length + pad;
  if (wqe.byte_period != 0) pacer_.on_sent(now, wqe.byte_period, paced_size(wqe));
  send_queue_.begin();
  return true;
}

// Headers and payload as the first parts of the packet.
MemoryFault QueuePair::gather(SendWqe& wqe, Transmit& packet) const noexcept {
  packet.parts[0] = std::span(wqe.datagram.header).first(wqe.datagram.header_size);
  packet.part_count = 1;
  if ((wqe.flags & SendWqe::kInline) != 0) {
    if (wqe.length != 0) packet.parts[packet.part_count++] = {SendQueue::inline_data_of(wqe), wqe.length};
    return MemoryFault::kNone;
  }
  for (const Sge& sge : std::span(SendQueue::sges_of(wqe), wqe.sge_count)) {
    if (sge.length == 0) continue;
    std::span<std::byte> bytes;
    const MemoryFault fault = memory_->resolve(*domain_, sge, kLocalRead, bytes);
    if (fault != MemoryFault::kNone) return fault;
    packet.parts[packet.part_count++] = bytes;
  }
  return MemoryFault::kNone;
}

}  // namespace verbena::engine
