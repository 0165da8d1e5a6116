// The send side of a queue pair as far as every type shares it: posting, completing, flushing (InfiniBand Architecture
// volume 1, sections 10.7.2, 10.8.2 and 10.10.2). How a request becomes packets is the type's: ud_send.cc,
// frame_send.cc.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/queue_pair.h"
#include "engine/request_kind.h"

namespace verbena::engine {

int QueuePair::judge(const SendRequest& request, std::uint64_t& length, SendVerdict& verdict) const noexcept {
  if (state() < QpState::kReadyToSend) return EINVAL;
  if ((request.flags & ~kOfferedSendFlags) != 0 || request.sges.size() > capabilities_.max_send_sge) return EINVAL;
  length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  if ((request.flags & kSendInline) != 0 && length > capabilities_.max_inline_data) return EINVAL;
  verdict = verdict_on(request);
  return verdict == SendVerdict::kRefuse ? EINVAL : 0;
}

SendVerdict QueuePair::verdict_on(const SendRequest& request) const noexcept {
  if (sends_datagrams()) return verdict_on_datagram(request);
  if (requester_ != nullptr) return verdict_on_request(request);
  return sends_frames() ? verdict_on_frame(request) : SendVerdict::kRefuse;
}

void QueuePair::write_wqe(const SendRequest& request, std::uint64_t length, SendVerdict verdict) noexcept {
  SendWqe& wqe = send_queue_.free_slot();
  wqe.wr_id = request.wr_id;
  wqe.address = request.address;
  wqe.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, UINT32_MAX));
  wqe.opcode = request.opcode;
  wqe.sge_count = static_cast<std::uint8_t>(request.sges.size());
  wqe.flags = (signal_all_ || (request.flags & kSendSignaled) != 0) ? SendWqe::kSignaled : std::uint8_t{0};
  if (verdict == SendVerdict::kFailLater) {
    wqe.flags |= SendWqe::kRefused;
    wqe.byte_period = 0;
    if (requester_ != nullptr) requester_->prepare_refused(wqe);
    return;
  }
  if ((request.flags & kSendInline) != 0) {
    wqe.flags |= SendWqe::kInline;
    std::byte* to = SendQueue::inline_data_of(wqe);
    for (const Sge& sge : request.sges) {
      if (sge.length == 0) continue;
      std::memcpy(to, reinterpret_cast<const std::byte*>(sge.address), sge.length);
      to += sge.length;
    }
  } else {
    std::copy(request.sges.begin(), request.sges.end(), SendQueue::sges_of(wqe));
  }
  if (sends_datagrams()) {
    encode_ud(request, wqe);
  } else if (requester_ != nullptr) {
    requester_->prepare(request, wqe);
  } else {
    encode_frame(wqe);
  }
}

int QueuePair::check_send(const SendRequest& request) const noexcept {
  std::uint64_t length = 0;
  SendVerdict verdict = SendVerdict::kRefuse;
  return judge(request, length, verdict);
}

int QueuePair::post_send(const SendRequest& request) noexcept {
  std::uint64_t length = 0;
  SendVerdict verdict = SendVerdict::kRefuse;
  if (const int error = judge(request, length, verdict); error != 0) return error;
  const bool flushes = state() == QpState::kSendQueueError || state() == QpState::kError;
  if (flushes) flush_send();
  if (send_queue_.full()) return ENOMEM;
  write_wqe(request, length, verdict);
  send_queue_.post();
  if (flushes) flush_send();
  return 0;
}

bool QueuePair::poll_transmit(Instant now, Transmit& packet) noexcept {
  if (requester_ != nullptr) return poll_request(now, packet);
  if (state() != QpState::kReadyToSend) [[unlikely]] {
    // Those on their way complete first: their packets may still have to be read.
    if (send_queue_.on_their_way() == 0) settle_send();
    return false;
  }
  if (send_queue_.all_begun()) return false;
  if (fault_status_ != WcStatus::kSuccess) return false;  // waits for those before it
  return sends_datagrams() ? begin_ud(now, packet) : begin_frame(now, packet);
}

bool QueuePair::has_untransmitted() const noexcept {
  if (state() == QpState::kError) return send_queue_.size() != 0;
  if (requester_ != nullptr) return sends_requests() && requester_->has_sendable(state() == QpState::kReadyToSend);
  return state() == QpState::kReadyToSend && !send_queue_.all_begun() && fault_status_ == WcStatus::kSuccess;
}

void QueuePair::on_transmitted(std::size_t count) noexcept {
  if (requester_ != nullptr) {
    requester_->on_transmitted(count);
    settle_requests();
    return;
  }
  for (count = std::min(count, send_queue_.on_their_way()); count != 0; --count) {
    const SendWqe& wqe = send_queue_.oldest();
    if ((wqe.flags & SendWqe::kSignaled) != 0) {
      complete_send(WcStatus::kSuccess, MemoryFault::kNone);
    } else {
      send_queue_.complete();
    }
  }
  if (fault_status_ != WcStatus::kSuccess) settle_fault();
  if (drain_event_wanted_) raise_if_drained();
}

void QueuePair::rewind_transmit() noexcept {
  if (requester_ != nullptr) {
    requester_->rewind_transmit();
    return;
  }
  while (send_queue_.on_their_way() != 0) {
    const SendWqe& wqe = send_queue_.unbegin();
    if (wqe.byte_period != 0) pacer_.refund(wqe.byte_period, paced_size(wqe));
  }
  fault_status_ = WcStatus::kSuccess;  // of a request that will have its turn again
}

std::optional<Instant> QueuePair::next_departure() const noexcept {
  if (requester_ != nullptr) {
    return sends_requests() ? requester_->next_departure(state() == QpState::kReadyToSend) : std::nullopt;
  }
  if (state() != QpState::kReadyToSend || send_queue_.all_begun()) return std::nullopt;
  if (send_queue_.next().byte_period == 0) return std::nullopt;
  return pacer_.free_at();
}

void QueuePair::settle_send() noexcept {
  if (state() == QpState::kError) flush_send();
}

// The request at the cursor cannot be sent. Always false, as poll_transmit() answers.
bool QueuePair::stop_sending(WcStatus status, MemoryFault fault) noexcept {
  fault_status_ = status;
  fault_ = fault;
  settle_fault();
  return false;
}

void QueuePair::settle_fault() noexcept {
  if (send_queue_.on_their_way() != 0) return;
  // Not over kError, to which the receive side may just have gone.
  QpState from = QpState::kReadyToSend;
  if (!state_.compare_exchange_strong(from, QpState::kSendQueueError, std::memory_order_relaxed) &&
      from == QpState::kSendQueueDrained) {
    state_.compare_exchange_strong(from, QpState::kSendQueueError, std::memory_order_relaxed);
  }
  drain_event_wanted_ = false;
  flush_send();
}

// Completes the oldest request. An unsuccessful one tells its opcode to nobody.
void QueuePair::complete_send(WcStatus status, MemoryFault fault) noexcept {
  const SendWqe& wqe = send_queue_.oldest();
  Completion completion;
  completion.wr_id = wqe.wr_id;
  completion.status = status;
  completion.opcode = requester_ == nullptr ? WcOpcode::kSend : kind_of(wqe.opcode)->completion;
  completion.vendor_error = static_cast<std::uint32_t>(fault);
  completion.byte_length = wqe.length;
  completion.qp_number = qpn_.value();
  send_queue_.complete();
  send_completions_->push(completion, send_queue_.place());
}

// Completes all there is, in order: the one that failed with its own status, the others as flushed.
void QueuePair::flush_send() noexcept {
  while (send_queue_.size() != 0) {
    if (fault_status_ != WcStatus::kSuccess && send_queue_.on_their_way() == 0) {
      complete_send(fault_status_, fault_);
      fault_status_ = WcStatus::kSuccess;
    } else {
      complete_send(WcStatus::kFlushError, MemoryFault::kNone);
    }
  }
}

void QueuePair::raise_if_drained() noexcept {
  if (!drain_event_wanted_ || send_queue_.on_their_way() != 0) return;
  drain_event_wanted_ = false;
  raise(QpEvent::kSendQueueDrained);
}

}  // namespace verbena::engine
