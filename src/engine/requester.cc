// What is sent next, and what is done. The packets themselves: requester_packet.cc; the answers: requester_response.cc.
#include "engine/requester.h"

#include <algorithm>
#include <utility>

#include "engine/request_kind.h"

namespace verbena::engine {

void Requester::start(Psn first) noexcept {
  next_psn_ = unacked_ = highest_ = first;
  pace_.on_path();
  done_ = queue_.completed();
  cursor_ = {.request = done_};
  retries_left_ = connection_.retry_count;
  rnr_left_ = connection_.rnr_retry;
}

void Requester::reset() noexcept {
  start(Psn{});
  failure_.reset();
  fault_.reset();
  receive_limit_.reset();
  deadline_.reset();
  rnr_until_.reset();
  yielded_count_ = transmitted_ = 0;
  retrying_ = false;
  pace_.reset();
  peer_.reset();
  selective_.reset();
}

void Requester::resume() noexcept {
  const Psn next = next_psn_;
  reset();
  start(next);
}

void Requester::prepare_refused(SendWqe& wqe) noexcept {
  wqe.opcode = SendOpcode::kSend;
  wqe.connected = {};
  wqe.connected.first_psn = next_psn_;
  wqe.connected.receive_number = next_receive_number_;
  wqe.connected.packet_count = 1;
  ++next_psn_;
}

void Requester::prepare(const SendRequest& request, SendWqe& wqe) noexcept {
  const RequestKind& kind = *kind_of(request.opcode);
  ConnectedPart& part = wqe.connected;
  part.remote_address = request.remote_address;
  part.compare_add = request.compare_add;
  part.swap = request.swap;
  part.rkey = request.rkey;
  part.immediate = request.immediate;
  part.shared_queue = request.shared_queue;
  part.window = request.window;
  part.region = request.region;
  part.access = request.access;
  part.window_type = request.window_type;
  part.fence = (request.flags & kSendFence) != 0;
  part.solicited = (request.flags & kSendSolicited) != 0;
  part.first_psn = next_psn_;
  part.receive_number = next_receive_number_;
  if (kind.takes_receive()) ++next_receive_number_;
  part.packet_count = packets_of(kind, wqe.length);
  next_psn_ = next_psn_ + part.packet_count;
}

// A flush names a range, however long, and carries nothing.
std::uint32_t Requester::packets_of(const RequestKind& kind, std::uint32_t length) const noexcept {
  if (kind.local) return 0;
  if (kind.operation == wire::Operation::kFlush) return 1;
  return std::max(1U, (length + connection_.mtu - 1) / connection_.mtu);
}

// --- sending

bool Requester::poll_transmit(Instant now, bool may_begin, Transmit& packet) noexcept {
  last_poll_ = now;
  if (rnr_until_ && *rnr_until_ <= now) rnr_until_.reset();
  if (may_repeat() && repeat(now, packet)) [[unlikely]]
    return true;
  for (;;) {
    switch (step(may_begin, now, packet)) {
      case Step::kPacket:
        return true;
      case Step::kNext:
        break;
      case Step::kWait:
        return false;
    }
  }
}

// One packet, or one step of the cursor without a packet.
Requester::Step Requester::step(bool may_begin, Instant now, Transmit& packet) noexcept {
  if (failure_ || fault_ || rnr_until_ || yielded_count_ == kBatch || cursor_.request == queue_.posted())
    return Step::kWait;
  const bool begun = cursor_.request < queue_.begun();
  if (!begun && !may_begin) return Step::kWait;
  SendWqe& wqe = queue_.at(cursor_.request);
  if (wqe.connected.packet_count == 0 || cursor_.packet == wqe.connected.packet_count) {
    if (!begun) {
      if (wqe.connected.fence && cursor_.reads != 0) return Step::kWait;
      if (!carry_out(wqe)) return Step::kWait;
      queue_.begin();
    }
    ++cursor_.request;
    cursor_.packet = 0;
    if (!connection_.reliable || done_ + 1 == cursor_.request) acknowledge_to(unacked_, now);
    return Step::kNext;
  }
  if (blocked(wqe)) return Step::kWait;
  if (!pace_.may_send(now)) return Step::kWait;
  const Cursor before = cursor_;
  if (!make_packet(wqe, packet)) return Step::kWait;
  if (!begun) queue_.begin();
  note_sent(wqe, before, now, packet);
  return Step::kPacket;
}

void Requester::note_sent(const SendWqe& wqe, const Cursor& before, Instant now, const Transmit& packet) noexcept {
  Yielded& yielded = yielded_[yielded_count_++];
  yielded = {.before = before, .end = wqe.connected.first_psn + cursor_.packet, .spent = {}};
  if (pace_.is_unlimited()) return;
  yielded.spent = pace_.on_sent(now, packet.size);
}

// What takes no packet. False where it fails.
bool Requester::carry_out(const SendWqe& wqe) noexcept {
  const ConnectedPart& part = wqe.connected;
  MemoryFault fault = MemoryFault::kNone;
  if (wqe.opcode == SendOpcode::kLocalInvalidate) {
    fault = windows_->invalidate(domain_, MemoryKey(part.immediate), own_);
  } else {
    fault = windows_->bind({.domain = &domain_,
                            .by = own_,
                            .type = part.window_type,
                            .window = part.window,
                            .key = part.rkey,
                            .region = part.region,
                            .address = part.remote_address,
                            .length = part.compare_add,
                            .access = part.access});
  }
  if (fault == MemoryFault::kNone) return true;
  fail_later(WcStatus::kMemoryWindowBindError, fault);
  return false;
}

// Waits for an answer, not for the transport.
bool Requester::blocked(const SendWqe& wqe) const noexcept {
  if (!connection_.reliable) return false;
  const RequestKind& kind = *kind_of(wqe.opcode);
  if (kind.needs_response && cursor_.reads >= std::max<std::uint32_t>(1, connection_.max_rd_atomic)) return true;
  if (wqe.connected.fence && cursor_.packet == 0 && cursor_.reads != 0) return true;
  if (cursor_.packet == 0 && kind.takes_receive() && !has_credit(wqe)) return true;
  return !window_open(wqe);
}

std::uint64_t Requester::receives_done() const noexcept {
  return done_ < queue_.posted() ? queue_.at(done_).connected.receive_number : next_receive_number_;
}

// One beyond the limit is always allowed. What is done may be ahead of a limit whose acknowledgement was lost.
bool Requester::has_credit(const SendWqe& wqe) const noexcept {
  return !receive_limit_ || wqe.connected.receive_number <= std::max(*receive_limit_, receives_done());
}

bool Requester::window_open(const SendWqe& wqe) const noexcept {
  const Psn next = wqe.connected.first_psn + cursor_.packet;
  std::uint32_t packets = 1;
  if (wqe.opcode == SendOpcode::kRdmaRead) packets = piece_end(wqe, cursor_.packet) - cursor_.packet;
  const std::int32_t waiting = next.distance_from(unacked_);
  return waiting == 0 || static_cast<std::uint32_t>(waiting) + packets <= connection_.window;
}

std::uint32_t Requester::piece_end(const SendWqe& wqe, std::uint32_t packet) const noexcept {
  const std::uint32_t piece = piece_packets();
  return std::min(wqe.connected.packet_count, (packet / piece + 1) * piece);
}

bool Requester::has_sendable(bool may_begin) const noexcept {
  if (may_repeat()) return true;
  if (failure_ || fault_ || rnr_until_ || cursor_.request == queue_.posted()) return false;
  if (cursor_.request >= queue_.begun() && !may_begin) return false;
  const SendWqe& wqe = queue_.at(cursor_.request);
  if (wqe.connected.packet_count == 0) return !wqe.connected.fence || cursor_.reads == 0;
  return cursor_.packet == wqe.connected.packet_count || !blocked(wqe);
}

void Requester::on_transmitted(std::size_t count) noexcept {
  count = std::min(count, yielded_count_ - transmitted_);
  if (count == 0) return;
  for (const Yielded& yielded : std::span(yielded_).subspan(transmitted_, count)) {
    if (yielded.end.distance_from(highest_) > 0) {
      highest_ = yielded.end;
    } else {
      observe(TransportEvent::kSentAgain);
    }
  }
  transmitted_ += count;
  const Psn end = yielded_[transmitted_ - 1].end;
  if (transmitted_ == yielded_count_) yielded_count_ = transmitted_ = 0;
  if (!connection_.reliable) {
    acknowledge_to(end, last_poll_);
  } else if (!deadline_) {
    restart_timer(last_poll_);
  }
}

void Requester::rewind_transmit() noexcept {
  bool back = false;
  for (std::size_t i = transmitted_; i < yielded_count_; ++i) {
    const Yielded& yielded = yielded_[i];
    pace_.refund(yielded.spent);
    if (yielded.before.reads == kRepeats) {
      if (selective_ != nullptr) selective_->on_rewound(Psn(yielded.before.packet), yielded.end);
    } else if (!std::exchange(back, true)) {
      fault_.reset();  // of a request behind, found again when its turn comes
      cursor_ = yielded.before;
    }
  }
  yielded_count_ = transmitted_ = 0;
}

// --- time

// A timeout lasts between once and four times what is asked for (section 9.7.6.1.3): the longer the oftener it came
// without an answer, so that who is only slow is not buried under what is sent again.
void Requester::restart_timer(Instant now) noexcept {
  const bool waiting = unacked_ != highest_ && !rnr_until_ && connection_.ack_timeout.count() != 0;
  const int longer = 1 << std::min(2, connection_.retry_count - retries_left_);
  deadline_ = waiting ? std::optional(now + longer * connection_.ack_timeout) : std::nullopt;
}

void Requester::on_timeout(Instant now) noexcept {
  if (rnr_until_ && *rnr_until_ <= now) rnr_until_.reset();
  if (failure_) return;
  if (selective_ != nullptr && selective_->on_time(now)) {
    if (all_sent_once()) {
      observe(TransportEvent::kRetransmission);
    } else {
      selective_->give_up();  // the cursor is on its way over what is missing
    }
  }
  if (!deadline_ || now < *deadline_) return;
  observe(TransportEvent::kTimeout);
  retrying_ = false;
  retry(now, Again::kOnlyWhatIsMissing);
}

std::optional<Instant> Requester::next_timeout() const noexcept {
  if (failure_) return std::nullopt;
  std::optional<Instant> first = deadline_;
  if (rnr_until_ && (!first || *rnr_until_ < *first)) first = rnr_until_;
  if (selective_ == nullptr) return first;
  const auto repeat = selective_->next_timeout();
  return repeat && (!first || *repeat < *first) ? repeat : first;
}

std::optional<Instant> Requester::next_departure(bool may_begin) const noexcept {
  if (pace_.is_unlimited() || !has_sendable(may_begin)) return std::nullopt;
  return pace_.free_at();
}

// --- failing

void Requester::fail_later(WcStatus status, MemoryFault fault) noexcept {
  fault_ = Failure{status, fault};
  settle_failure();
}

void Requester::settle_failure() noexcept {
  if (fault_ && !failure_ && done_ == cursor_.request) failure_ = fault_;
}

// Sends again from the oldest that is not answered, unless that has been done and nothing was answered since.
void Requester::retry(Instant now, Again what) noexcept {
  if (retrying_) return;
  if (retries_left_ == 0) {
    observe(TransportEvent::kRetryExceeded);
    fail(WcStatus::kRetryExceededError);
    return;
  }
  if (what == Again::kOnlyWhatIsMissing && repeats_after_timeout(now)) {
    observe(TransportEvent::kRetransmission);
    selective_->begin_pass(highest_);
  } else {
    go_back();
  }
  --retries_left_;
  restart_timer(now);
}

void Requester::go_back() noexcept {
  retrying_ = true;
  if (selective_ != nullptr) selective_->give_up();
  fault_.reset();  // found again when its turn comes
  observe(TransportEvent::kRetransmission);
  // A request that takes no packet has been carried out already: acknowledge_to() goes past it.
  cursor_ = {.request = done_};
  if (done_ < queue_.posted()) {
    const std::int32_t packet = unacked_.distance_from(queue_.at(done_).connected.first_psn);
    cursor_.packet = packet > 0 ? static_cast<std::uint32_t>(packet) : 0;
  }
}

}  // namespace verbena::engine
