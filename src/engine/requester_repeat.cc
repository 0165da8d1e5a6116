// Selective repeat: what is known to be missing is sent again by itself, and what came early waits for its turn.
//
// Of requests the other end tells which it has (SELECTIVE_ACKNOWLEDGE). Of answers, any that comes shows that all
// before it were sent; those that are missing are asked for again, of a read by a read of the missing part alone, which
// the other end takes for a repetition (section 9.7.5.1.4).
#include <algorithm>
#include <new>

#include "engine/request_kind.h"
#include "engine/requester.h"

namespace verbena::engine {

// False where there is no memory for it.
bool Requester::begin_selective() noexcept {
  if (selective_ == nullptr) selective_.reset(new (std::nothrow) SelectiveRepeat(unacked_, connection_.ack_timeout));
  return selective_ != nullptr;
}

Drop Requester::on_selective_acknowledge(const wire::Packet& packet, Instant now) noexcept {
  if (!connection_.repeats_selectively) return Drop::kOpcodeNotForQp;
  observe(TransportEvent::kSelectiveAckReceived);
  peer_.set_able();
  const Psn psn = packet.bth.psn;
  if (!begin_selective()) return Drop::kNone;  // a timeout will go back
  if (answers_all_before(packet, psn, now)) take_credits(packet.aeth.syndrome);
  if (failure_) return Drop::kNone;
  selective_->on_progress(unacked_, now);
  selective_->on_told(psn, packet.selective_eth, highest_, now);
  return Drop::kNone;
}

// An answer came before one that is missing; all before `end` was carried out. False where it cannot be kept.
bool Requester::keep_early(const wire::Packet& packet, Psn end, Instant now) noexcept {
  if (!peer_.is_able() || !begin_selective()) return false;
  selective_->on_progress(unacked_, now);
  const wire::Operation operation = wire::row_of(packet.bth.opcode).operation;
  const bool tells_progress_alone =
      operation == wire::Operation::kSelectiveAcknowledge ||
      (operation == wire::Operation::kAcknowledge && packet.aeth.syndrome.kind() == wire::SyndromeKind::kAck);
  if (!tells_progress_alone && !selective_->early().keep(packet)) return false;
  const bool is_answer =
      operation == wire::Operation::kReadResponse || operation == wire::Operation::kAtomicAcknowledge;
  selective_->on_reached(is_answer ? end + 1 : end, now);
  return true;
}

// Moves on as far as what is known and what was kept allows.
void Requester::deliver_early(Instant now) noexcept {
  while (!failure_) {
    selective_->on_progress(unacked_, now);
    acknowledge_to(selective_->reached(), now);
    selective_->on_progress(unacked_, now);
    const auto next = selective_->early().take(unacked_);
    if (next == nullptr) return;
    on_answer(next->packet, now);
  }
}

// Whether the cursor is where nothing was sent yet.
bool Requester::all_sent_once() const noexcept {
  if (cursor_.request == queue_.posted()) return true;
  const Psn at = queue_.at(cursor_.request).connected.first_psn + cursor_.packet;
  return at.distance_from(highest_) >= 0;
}

// After the first timeout only what the other end has not told of; after the next one everything.
bool Requester::repeats_after_timeout(Instant now) noexcept {
  if (!peer_.is_able() || rnr_until_ || retries_left_ != connection_.retry_count || !all_sent_once()) return false;
  if (!begin_selective()) return false;
  selective_->on_progress(unacked_, now);
  reach_end_of_piece(now);
  return true;
}

// An answer to a part of a read shows that its request was carried out: what is missing of it are answers.
void Requester::reach_end_of_piece(Instant now) noexcept {
  const Psn reached = selective_->reached();
  for (std::uint64_t request = done_; request < queue_.begun(); ++request) {
    const SendWqe& wqe = queue_.at(request);
    const std::int32_t packet = reached.distance_from(wqe.connected.first_psn);
    if (packet <= 0) return;
    const auto within = static_cast<std::uint32_t>(packet);
    if (within >= wqe.connected.packet_count) continue;
    const bool is_read = kind_of(wqe.opcode)->operation == wire::Operation::kReadRequest;
    if (is_read && within % piece_packets() != 0) {
      selective_->on_reached(wqe.connected.first_psn + piece_end(wqe, within), now);
    }
    return;
  }
}

bool Requester::repeat(Instant now, Transmit& packet) noexcept {
  if (yielded_count_ == kBatch || !pace_.may_send(now)) return false;
  const auto missing = next_missing();
  if (!missing) {
    selective_->end_pass(now);
    return false;
  }
  SendWqe& wqe = queue_.at(missing->request);
  if (fill_packet(wqe, missing->packet, missing->end, true, packet) != MemoryFault::kNone) {
    go_back();  // and find it again there
    return false;
  }
  const Psn first = wqe.connected.first_psn + missing->packet;
  const Psn end = wqe.connected.first_psn + missing->end;
  selective_->on_repeated(first, end);
  Yielded& yielded = yielded_[yielded_count_++];
  yielded = {.before = {.request = 0, .packet = first.value(), .reads = kRepeats}, .end = end, .spent = {}};
  if (!pace_.is_unlimited()) yielded.spent = pace_.on_sent(now, packet.size);
  return true;
}

// The next of the pass.
std::optional<Requester::Missing> Requester::next_missing() const noexcept {
  const Psn at = selective_->pass_at();
  const Psn from = at.distance_from(unacked_) > 0 ? at : unacked_;
  for (std::uint64_t request = done_; request < queue_.begun(); ++request) {
    const ConnectedPart& part = queue_.at(request).connected;
    if (part.first_psn.distance_from(selective_->pass_end()) >= 0) break;
    std::uint32_t packet = static_cast<std::uint32_t>(std::max(0, from.distance_from(part.first_psn)));
    for (; packet < part.packet_count; ++packet) {
      if ((part.first_psn + packet).distance_from(selective_->pass_end()) >= 0) return std::nullopt;
      if (const auto missing = missing_of(request, packet)) return missing;
    }
  }
  return std::nullopt;
}

// Nothing where the packet, or the answer to it, is there, or was asked for a while ago.
std::optional<Requester::Missing> Requester::missing_of(std::uint64_t request, std::uint32_t packet) const noexcept {
  const SendWqe& wqe = queue_.at(request);
  const RequestKind& kind = *kind_of(wqe.opcode);
  const Psn first = wqe.connected.first_psn;
  const bool is_read = kind.operation == wire::Operation::kReadRequest;
  const std::uint32_t piece = is_read ? piece_end(wqe, packet) : packet + 1;
  if ((first + packet).distance_from(selective_->reached()) >= 0) {
    // Only the first packet of a piece stands for a request.
    if (is_read && packet % piece_packets() != 0) return std::nullopt;
    if (!selective_->is_request_missing(first + packet)) return std::nullopt;
    return Missing{request, packet, piece};
  }
  if (!kind.needs_response || !selective_->is_answer_missing(first + packet)) return std::nullopt;
  std::uint32_t end = packet + 1;
  while (end < piece && (first + end).distance_from(selective_->reached()) < 0 &&
         selective_->is_answer_missing(first + end)) {
    ++end;
  }
  return Missing{request, packet, end};
}

}  // namespace verbena::engine
