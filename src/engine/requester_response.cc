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
  const Psn psn = packet.bth.psn;
  if (psn.distance_from(highest_) >= 0) return Drop::kUnexpectedResponse;  // of what was never sent
  if (psn.distance_from(unacked_) < 0) return Drop::kNone;                 // told before
  switch (wire::row_of(packet.bth.opcode).operation) {
    case wire::Operation::kAcknowledge:
      return on_acknowledge(packet, now);
    case wire::Operation::kReadResponse:
      return on_read_response(packet, now);
    case wire::Operation::kAtomicAcknowledge:
      return on_atomic_acknowledge(packet, now);
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
      if (acknowledge_to(psn + 1, now)) {
        take_credits(packet.aeth.syndrome);
      } else {
        retry(now);
      }
      return Drop::kNone;
    case wire::SyndromeKind::kRnrNak:
      if (!acknowledge_to(psn, now)) {
        retry(now);
        return Drop::kNone;
      }
      return on_rnr_nak(packet.aeth.syndrome.code(), now);
    case wire::SyndromeKind::kNak:
      if (!acknowledge_to(psn, now)) {
        retry(now);
        return Drop::kNone;
      }
      return on_nak(packet.aeth.syndrome.nak_code(), now);
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
  if (!acknowledge_to(psn, now)) {
    retry(now);  // one before it is missing
    return Drop::kNone;
  }
  if (done_ == queue_.begun() || psn != unacked_) return Drop::kUnexpectedResponse;
  SendWqe& wqe = queue_.at(done_);
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
  unacked_ = psn + 1;
  if (number + 1 == piece_end(wqe, number) && cursor_.reads != 0) --cursor_.reads;
  if (number + 1 == wqe.connected.packet_count) ++done_;
  made_progress(now);
  acknowledge_to(unacked_, now);
  return Drop::kNone;
}

Drop Requester::on_atomic_acknowledge(const wire::Packet& packet, Instant now) noexcept {
  const Psn psn = packet.bth.psn;
  if (!acknowledge_to(psn, now)) {
    retry(now);
    return Drop::kNone;
  }
  if (done_ == queue_.begun() || psn != unacked_) return Drop::kUnexpectedResponse;
  SendWqe& wqe = queue_.at(done_);
  const wire::Operation operation = kind_of(wqe.opcode)->operation;
  if (operation != wire::Operation::kCompareSwap && operation != wire::Operation::kFetchAdd) {
    return Drop::kUnexpectedResponse;
  }
  std::array<std::byte, sizeof(std::uint64_t)> original;
  std::memcpy(original.data(), &packet.atomic_ack_eth.original, original.size());
  if (const auto fault = place(wqe, 0, original); fault != MemoryFault::kNone) {
    fail(WcStatus::kLocalProtectionError, fault);
    return Drop::kNone;
  }
  unacked_ = psn + 1;
  ++done_;
  if (cursor_.reads != 0) --cursor_.reads;
  made_progress(now);
  acknowledge_to(unacked_, now);
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
