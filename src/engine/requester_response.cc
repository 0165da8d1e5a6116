// What the other end answers: acknowledgements, refusals, and the bytes of reads and atomics.
#include <algorithm>
#include <cstring>

#include "engine/request_kind.h"
#include "engine/requester.h"
#include "engine/sge_range.h"
#include "wire/credit.h"
#include "wire/rnr_timer.h"

namespace verbena::engine {
namespace {

Psn later(Psn a, Psn b) noexcept {
  return a.distance_from(b) > 0 ? a : b;
}

WcStatus status_of(wire::NakCode code) noexcept {
  switch (code) {
    case wire::NakCode::kPsnSequenceError:
    case wire::NakCode::kInvalidRequest:
    case wire::NakCode::kInvalidRdRequest:
      return WcStatus::kRemoteInvalidRequestError;
    case wire::NakCode::kRemoteAccessError:
      return WcStatus::kRemoteAccessError;
    case wire::NakCode::kRemoteOperationalError:
      return WcStatus::kRemoteOperationError;
  }
  return WcStatus::kRemoteInvalidRequestError;
}

}  // namespace

Drop Requester::on_response(const wire::Packet& packet, Instant now) noexcept {
  if (failure_) return Drop::kBadQpState;
  if (connection_.repeats_selectively && !peer_.is_able()) peer_.on_packet(packet.bth);
  const Psn psn = packet.bth.psn;
  const std::int32_t beyond = psn.distance_from(highest_);
  const bool is_selective = packet.bth.opcode == wire::Opcode::kSelectiveAcknowledge;  // may name what comes next
  if (beyond > 0 || (beyond == 0 && !is_selective)) return Drop::kUnexpectedResponse;  // of what was never sent
  if (psn.distance_from(unacked_) < 0) return Drop::kNone;                             // told before
  const Drop drop = on_answer(packet, now);
  if (selective_ != nullptr) [[unlikely]]
    deliver_early(now);
  return drop;
}

Drop Requester::on_answer(const wire::Packet& packet, Instant now) noexcept {
  switch (wire::row_of(packet.bth.opcode).operation) {
    case wire::Operation::kAcknowledge:
      return on_acknowledge(packet, now);
    case wire::Operation::kReadResponse:
      return on_read_response(packet, now);
    case wire::Operation::kAtomicAcknowledge:
      return on_atomic_acknowledge(packet, now);
    case wire::Operation::kSelectiveAcknowledge:
      return on_selective_acknowledge(packet, now);
    case wire::Operation::kSend:
    case wire::Operation::kWrite:
    case wire::Operation::kReadRequest:
    case wire::Operation::kCompareSwap:
    case wire::Operation::kFetchAdd:
    case wire::Operation::kFlush:
    case wire::Operation::kAtomicWrite:
    case wire::Operation::kCongestion:
      break;
  }
  return Drop::kOpcodeNotForQp;
}

// All before `end` has arrived at the other end. False where that cannot be, because the answer to a read or an atomic
// among them is missing.
bool Requester::acknowledge_to(Psn end, Instant now) noexcept {
  const Psn before = unacked_;
  const std::uint64_t done_before = done_;
  bool complete = true;
  while (done_ < queue_.begun()) {
    const SendWqe& wqe = queue_.at(done_);
    const Psn request_end = wqe.connected.first_psn + wqe.connected.packet_count;
    unacked_ = later(unacked_, wqe.connected.first_psn);
    if (wqe.connected.packet_count != 0 && kind_of(wqe.opcode)->needs_response) {
      complete = end.distance_from(unacked_) <= 0;
      break;
    }
    // Both counted from unacked_: a request may take half of the circle.
    const std::uint32_t left = (request_end.value() - unacked_.value()) & Psn::kMask;
    const std::int32_t told = end.distance_from(unacked_);
    if (told < static_cast<std::int32_t>(left)) {
      unacked_ = later(unacked_, end);
      break;
    }
    unacked_ = request_end;
    ++done_;
  }
  if (unacked_ != before || done_ != done_before) made_progress(now);
  return complete;
}

// The same for what `packet` tells; what is missing is asked for again.
bool Requester::answers_all_before(const wire::Packet& packet, Psn end, Instant now) noexcept {
  if (acknowledge_to(end, now)) return true;
  if (!keep_early(packet, end, now)) retry(now);
  return false;
}

// The request that is due an answer of its own with this PSN; nullptr where none is, or its answer must come again.
SendWqe* Requester::answered_by(const wire::Packet& packet, Instant now, Drop& drop) noexcept {
  if (!answers_all_before(packet, packet.bth.psn, now)) return nullptr;
  if (done_ != queue_.begun() && packet.bth.psn == unacked_) return &queue_.at(done_);
  drop = Drop::kUnexpectedResponse;
  return nullptr;
}

// The packet of the oldest request has its answer: the last of what it asked for at once, the last of all.
void Requester::on_answered(Psn psn, bool ends_piece, bool ends_request, Instant now) noexcept {
  unacked_ = psn + 1;
  if (ends_piece && cursor_.reads != 0) --cursor_.reads;
  if (ends_request) ++done_;
  made_progress(now);
  acknowledge_to(unacked_, now);
}

void Requester::made_progress(Instant now) noexcept {
  retries_left_ = connection_.retry_count;
  rnr_left_ = connection_.rnr_retry;
  retrying_ = false;
  // What was answered while it was about to be sent again need not be.
  if (cursor_.request < done_) {
    cursor_ = {.request = done_, .packet = 0, .reads = 0};
  }
  if (done_ < queue_.posted() && cursor_.request == done_) {
    const std::int32_t packet = unacked_.distance_from(queue_.at(done_).connected.first_psn);
    if (packet > static_cast<std::int32_t>(cursor_.packet)) cursor_.packet = static_cast<std::uint32_t>(packet);
  }
  restart_timer(now);
  settle_failure();
}

Drop Requester::on_acknowledge(const wire::Packet& packet, Instant now) noexcept {
  const Psn psn = packet.bth.psn;
  switch (packet.aeth.syndrome.kind()) {
    case wire::SyndromeKind::kAck:
      if (answers_all_before(packet, psn + 1, now)) take_credits(packet.aeth.syndrome);
      return Drop::kNone;
    case wire::SyndromeKind::kRnrNak:
      return answers_all_before(packet, psn, now) ? on_rnr_nak(packet.aeth.syndrome.code(), now) : Drop::kNone;
    case wire::SyndromeKind::kNak:
      return answers_all_before(packet, psn, now) ? on_nak(packet.aeth.syndrome.nak_code(), now) : Drop::kNone;
    case wire::SyndromeKind::kReserved:
      break;
  }
  return Drop::kBadSyndrome;
}

// A promise is not taken back: receives go only to messages, and those were counted.
void Requester::take_credits(wire::Syndrome syndrome) noexcept {
  const auto credits = wire::credits_of(syndrome.code());
  if (!credits) {
    receive_limit_.reset();
    return;
  }
  const std::uint64_t limit = receives_done() + *credits;
  receive_limit_ = receive_limit_ ? std::max(*receive_limit_, limit) : limit;
}

Drop Requester::on_nak(wire::NakCode code, Instant now) noexcept {
  if (code == wire::NakCode::kPsnSequenceError) {
    observe(TransportEvent::kSequenceNakReceived);
    if (!rnr_until_) retry(now);  // else it is sent again anyway, when its time has come
  } else {
    fail(status_of(code));
  }
  return Drop::kNone;
}

Drop Requester::on_rnr_nak(std::uint8_t timer_code, Instant now) noexcept {
  if (rnr_until_) return Drop::kNone;  // a copy: it waits already
  observe(TransportEvent::kRnrNakReceived);
  if (rnr_left_ == 0) {
    observe(TransportEvent::kRnrRetryExceeded);
    fail(WcStatus::kRnrRetryExceededError);
    return Drop::kNone;
  }
  if (rnr_left_ != Connection::kForever) --rnr_left_;
  retries_left_ = connection_.retry_count;  // the other end lives, and says so
  rnr_until_ = now + wire::rnr_delay(timer_code);
  deadline_.reset();
  go_back();
  retrying_ = false;
  return Drop::kNone;
}

Drop Requester::on_read_response(const wire::Packet& packet, Instant now) noexcept {
  const Psn psn = packet.bth.psn;
  Drop drop = Drop::kNone;
  SendWqe* const answered = answered_by(packet, now, drop);
  if (answered == nullptr) return drop;
  SendWqe& wqe = *answered;
  const RequestKind& kind = *kind_of(wqe.opcode);
  if (!kind.needs_response || kind.operation == wire::Operation::kCompareSwap ||
      kind.operation == wire::Operation::kFetchAdd) {
    return Drop::kUnexpectedResponse;
  }
  const auto number = static_cast<std::uint32_t>(psn.distance_from(wqe.connected.first_psn));
  const std::uint32_t offset = number * connection_.mtu;
  const std::uint32_t expected = kind.reads_locally ? std::min(wqe.length - offset, connection_.mtu) : 0;
  if (packet.payload.size() != expected) {
    fail(WcStatus::kBadResponseError);
    return Drop::kNone;
  }
  if (const auto fault = place(wqe, number, packet.payload); fault != MemoryFault::kNone) {
    fail(WcStatus::kLocalProtectionError, fault);
    return Drop::kNone;
  }
  on_answered(psn, number + 1 == piece_end(wqe, number), number + 1 == wqe.connected.packet_count, now);
  return Drop::kNone;
}

Drop Requester::on_atomic_acknowledge(const wire::Packet& packet, Instant now) noexcept {
  Drop drop = Drop::kNone;
  SendWqe* const answered = answered_by(packet, now, drop);
  if (answered == nullptr) return drop;
  const wire::Operation operation = kind_of(answered->opcode)->operation;
  if (operation != wire::Operation::kCompareSwap && operation != wire::Operation::kFetchAdd) {
    return Drop::kUnexpectedResponse;
  }
  std::array<std::byte, sizeof(std::uint64_t)> original;
  std::memcpy(original.data(), &packet.atomic_ack_eth.original, original.size());
  if (const auto fault = place(*answered, 0, original); fault != MemoryFault::kNone) {
    fail(WcStatus::kLocalProtectionError, fault);
    return Drop::kNone;
  }
  on_answered(packet.bth.psn, true, true, now);
  return Drop::kNone;
}

MemoryFault Requester::place(SendWqe& wqe, std::uint32_t packet, std::span<const std::byte> payload) const noexcept {
  if (payload.empty()) return MemoryFault::kNone;
  MemoryPieces pieces;
  const auto fault = resolve_range(memory_, domain_, {SendQueue::sges_of(wqe), wqe.sge_count},
                                   std::uint64_t{packet} * connection_.mtu, payload.size(), kLocalWrite, pieces);
  if (fault == MemoryFault::kNone) store(payload, pieces);
  return fault;
}

}  // namespace verbena::engine
