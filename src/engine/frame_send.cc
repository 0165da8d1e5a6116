// How a raw packet queue pair sends: a request is one whole Ethernet frame, and goes out as it was written.
#include "engine/queue_pair.h"
#include "wire/ethernet_frame.h"

namespace verbena::engine {

SendVerdict QueuePair::verdict_on_frame(const SendRequest& request) const noexcept {
  std::uint64_t length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  const bool is_frame = request.opcode == SendOpcode::kSend && length >= wire::kEthernetSize;
  return is_frame ? SendVerdict::kAccept : SendVerdict::kRefuse;
}

void QueuePair::encode_frame(SendWqe& wqe) noexcept {
  wqe.address = nullptr;
  wqe.byte_period = frame_period_;
  wqe.datagram.envelope = {};
  wqe.datagram.destination_qpn = {};
  wqe.datagram.header_size = 0;
}

bool QueuePair::begin_frame(Instant now, Transmit& packet) noexcept {
  SendWqe& wqe = send_queue_.next();
  if (wqe.length > mtu_) return stop_sending(WcStatus::kLocalLengthError, MemoryFault::kNone);
  if (wqe.byte_period != 0 && !pacer_.may_send(now)) return false;
  if (const MemoryFault fault = gather(wqe, packet); fault != MemoryFault::kNone) {
    return stop_sending(WcStatus::kLocalProtectionError, fault);
  }
  packet.envelope = &wqe.datagram.envelope;
  packet.source_qpn = qpn_;
  packet.destination_qpn = {};
  packet.payload_size = packet.size = wqe.length;
  if (wqe.byte_period != 0) pacer_.on_sent(now, wqe.byte_period, paced_size(wqe));
  send_queue_.begin();
  return true;
}

}  // namespace verbena::engine
