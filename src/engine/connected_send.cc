// How a connected queue pair sends: through its requester, whose progress becomes completions here.
#include "engine/queue_pair.h"
#include "engine/request_kind.h"

namespace verbena::engine {

SendVerdict QueuePair::verdict_on_request(const SendRequest& request) const noexcept {
  const RequestKind* kind = kind_of(request.opcode);
  if (kind == nullptr || (kind->local && !has_windows_)) return SendVerdict::kRefuse;
  if (kind->reads_locally && (request.flags & kSendInline) != 0) return SendVerdict::kRefuse;
  // An operation of another service: hardware finds out when its turn comes.
  return takes(type_, request.opcode) ? SendVerdict::kAccept : SendVerdict::kFailLater;
}

bool QueuePair::poll_request(Instant now, Transmit& packet) noexcept {
  if (!sends_requests()) {
    settle_send();
    return false;
  }
  const bool polled = requester_->poll_transmit(now, state() == QpState::kReadyToSend, packet);
  if (!polled) settle_requests();
  return polled;
}

Drop QueuePair::take_response(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
  if (requester_ == nullptr) return Drop::kOpcodeNotForQp;
  if (!sends_requests()) return Drop::kBadQpState;
  if (const Drop drop = check_connected(packet, envelope); drop != Drop::kNone) return drop;
  const Drop drop = requester_->on_response(packet, now);
  settle_requests();
  return drop;
}

std::optional<Instant> QueuePair::next_timeout() const noexcept {
  if (requester_ == nullptr || !sends_requests()) return std::nullopt;
  return requester_->next_timeout();
}

void QueuePair::on_timeout(Instant now) noexcept {
  if (requester_ == nullptr || !sends_requests()) return;
  requester_->on_timeout(now);
  settle_requests();
}

// What is done completes; what has failed takes the queue pair with it.
void QueuePair::settle_requests() noexcept {
  while (send_queue_.completed() < requester_->done()) {
    if ((send_queue_.oldest().flags & SendWqe::kSignaled) != 0) {
      complete_send(WcStatus::kSuccess, MemoryFault::kNone);
    } else {
      send_queue_.complete();
    }
  }
  if (requester_->failure() && send_queue_.size() != 0) fail_request(*requester_->failure());
  if (drain_event_wanted_) raise_if_drained();
}

// UC gets over what its own end did wrong; a reliable connection is gone with its first failure.
void QueuePair::fail_request(const Requester::Failure& failure) noexcept {
  const QpState to = type_ == QpType::kUc ? QpState::kSendQueueError : QpState::kError;
  QpState from = state();
  while (from != QpState::kError && !state_.compare_exchange_weak(from, to, std::memory_order_relaxed)) {
  }
  drain_event_wanted_ = false;
  complete_send(failure.status, failure.fault);
  flush_send();
}

}  // namespace verbena::engine
