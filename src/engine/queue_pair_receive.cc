// The receive side of a queue pair as far as every type shares it: posting, the checks that come before a packet's
// service (InfiniBand Architecture volume 1, section 9.6), failing and flushing. The service itself: ud_receive.cc.
#include <cerrno>
#include <utility>

#include "engine/queue_pair.h"

namespace verbena::engine {
namespace {

constexpr std::uint16_t kPkeyBase = 0x7fff;
constexpr std::uint16_t kPkeyFullMember = 0x8000;

// Same partition, and not both limited members (section 10.9.3).
bool matches(Pkey pkey, Pkey own) noexcept {
  const bool same = (pkey.value() & kPkeyBase) == (own.value() & kPkeyBase);
  return same && ((pkey.value() | own.value()) & kPkeyFullMember) != 0;
}

}  // namespace

int QueuePair::post_receive(std::uint64_t wr_id, std::span<const Sge> sges) noexcept {
  const QpState now = state();
  if (now == QpState::kReset || has_shared_receives() || type_ == QpType::kXrcSend) return EINVAL;
  if (sges.size() > capabilities_.max_recv_sge) return EINVAL;
  int error = receive_queue_.post(wr_id, sges);
  if (error == ENOMEM) {
    receive_queue_.free(receives_given_back_.position.load(std::memory_order_relaxed));
    error = receive_queue_.post(wr_id, sges);
  }
  if (error != 0) return error;
  if (now == QpState::kError) {
    receives_flushed_ = true;
    flush_receive();
  }
  return 0;
}

Drop QueuePair::take_packet(const wire::Packet& packet, const Envelope& envelope,
                            std::size_t udp_payload_size) noexcept {
  if (!receives(state())) return Drop::kBadQpState;
  if (is_connected()) {
    if (responder_ == nullptr) return Drop::kOpcodeNotForQp;
    const Drop drop = check_connected(packet, envelope);
    return drop == Drop::kNone ? receive_request(packet) : drop;
  }
  if (type_ != QpType::kUd || wire::row_of(packet.bth.opcode).transport != wire::Transport::kUd) {
    return Drop::kOpcodeNotForQp;
  }
  if (!matches(packet.bth.pkey, pkey())) return Drop::kPkeyMismatch;
  return receive_ud(packet, envelope, udp_payload_size);
}

// Of this connection, from its other end, by the path that they agreed on.
Drop QueuePair::check_connected(const wire::Packet& packet, const Envelope& envelope) const noexcept {
  const wire::OpcodeRow& row = wire::row_of(packet.bth.opcode);
  const bool fits = row.transport == connection_.transport ||
                    (row.transport == wire::Transport::kOwn && connection_.repeats_selectively);
  if (!fits) return Drop::kOpcodeNotForQp;
  return check_peer(packet, envelope);
}

Drop QueuePair::check_peer(const wire::Packet& packet, const Envelope& envelope) const noexcept {
  if (!matches(packet.bth.pkey, pkey())) return Drop::kPkeyMismatch;
  return is_from_peer(connection_, envelope) ? Drop::kNone : Drop::kNotThePeer;
}

// A receive whose memory is not as it should be takes the queue pair to the error state; the completion says why.
Drop QueuePair::fail_receive(std::uint64_t wr_id, MemoryFault fault) noexcept {
  state_.store(QpState::kError, std::memory_order_relaxed);
  complete_receive(wr_id, WcStatus::kLocalProtectionError, fault);
  settle_receive();
  return Drop::kReceiveProtection;
}

void QueuePair::complete_receive(std::uint64_t wr_id, WcStatus status, MemoryFault fault) noexcept {
  Completion completion;
  completion.wr_id = wr_id;
  completion.status = status;
  completion.opcode = WcOpcode::kReceive;
  completion.vendor_error = static_cast<std::uint32_t>(fault);
  completion.qp_number = qpn_.value();
  receive_sink().push(completion, receive_place());
}

// What polling the completion of the receive that was popped last gives back. A shared queue has given it back already.
Place QueuePair::receive_place() noexcept {
  return {has_shared_receives() ? nullptr : &receives_given_back_, receive_queue_.popped()};
}

void QueuePair::settle_receive() noexcept {
  if (state() != QpState::kError || std::exchange(receives_flushed_, true)) return;
  flush_receive();
}

// What is in a shared queue stays there for the others; the event says that no more will be taken for this one.
void QueuePair::flush_receive() noexcept {
  if (responder_ != nullptr) {
    if (const auto wr_id = responder_->abandon_receive()) {
      complete_receive(*wr_id, WcStatus::kFlushError, MemoryFault::kNone);
    }
  }
  if (has_shared_receives()) {
    raise(QpEvent::kLastWqeReached);
    return;
  }
  while (!receive_queue_.empty()) {
    const std::uint64_t wr_id = receive_queue_.front().wr_id;
    receive_queue_.pop();
    complete_receive(wr_id, WcStatus::kFlushError, MemoryFault::kNone);
  }
}

}  // namespace verbena::engine
