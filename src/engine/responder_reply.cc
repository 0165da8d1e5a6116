// Answers: what is said of a request, what is said again, and the packets that say it.
#include <algorithm>

#include "engine/limits.h"
#include "engine/responder.h"
#include "wire/credit.h"

namespace verbena::engine {
namespace {

using wire::NakCode;

// Opcodes of answers, behind those of the transport.
constexpr std::uint8_t kReadFirst = 0x0d;
constexpr std::uint8_t kReadMiddle = 0x0e;
constexpr std::uint8_t kReadLast = 0x0f;
constexpr std::uint8_t kReadOnly = 0x10;
constexpr std::uint8_t kAcknowledgeCode = 0x11;
constexpr std::uint8_t kAtomicAcknowledgeCode = 0x12;

std::uint8_t read_code(std::uint32_t number, std::uint32_t count) noexcept {
  if (count == 1) return kReadOnly;
  if (number == 0) return kReadFirst;
  return number + 1 == count ? kReadLast : kReadMiddle;
}

}  // namespace

// How a read or an atomic is answered; kAcknowledge for any other operation.
Responder::ReplyKind Responder::kind_of_answer(wire::Operation operation) noexcept {
  switch (operation) {
    case wire::Operation::kReadRequest:
      return ReplyKind::kRead;
    case wire::Operation::kCompareSwap:
    case wire::Operation::kFetchAdd:
      return ReplyKind::kAtomic;
    case wire::Operation::kFlush:
    case wire::Operation::kAtomicWrite:
      return ReplyKind::kDone;
    case wire::Operation::kSend:
    case wire::Operation::kWrite:
    case wire::Operation::kReadResponse:
    case wire::Operation::kAcknowledge:
    case wire::Operation::kAtomicAcknowledge:
    case wire::Operation::kCongestion:
    case wire::Operation::kSelectiveAcknowledge:
      break;
  }
  return ReplyKind::kAcknowledge;
}

// --- refusals

// The queue pair goes to the error state, and the other end learns why. UC refuses in silence and lives on.
void Responder::refuse(NakCode code, const wire::Packet& packet, Drop drop, Outcome& outcome) noexcept {
  outcome.drop = drop;
  message_ = Message::kNone;
  if (!connection_.reliable) {
    expected_ = packet.bth.psn + 1;
    return;
  }
  acknowledge(packet.bth.psn, wire::Syndrome::nak(code));
  outcome.fatal = true;
  if (has_receive_ && (xrc_ == nullptr || reach_taken())) {
    fail_receive(
        code == NakCode::kRemoteAccessError ? WcStatus::kLocalAccessError : WcStatus::kRemoteInvalidRequestError,
        MemoryFault::kNone, outcome);
    return;
  }
  has_receive_ = false;
  outcome.tells = true;
  outcome.access = code == NakCode::kRemoteAccessError;
}

void Responder::fail_receive(WcStatus status, MemoryFault fault, Outcome& outcome) noexcept {
  outcome.fatal = true;
  message_ = Message::kNone;
  has_receive_ = false;
  outcome.completes = true;
  outcome.completion.wr_id = receive_.wr_id;
  outcome.completion.status = status;
  outcome.completion.opcode = WcOpcode::kReceive;
  outcome.completion.vendor_error = static_cast<std::uint32_t>(fault);
  outcome.completion.qp_number = own_.value();
}

void Responder::not_ready(const wire::Packet& packet, Outcome& outcome) noexcept {
  outcome.drop = Drop::kNoReceiveRequest;
  if (!connection_.reliable) {
    message_ = Message::kNone;
    expected_ = packet.bth.psn + 1;
    return;
  }
  silent_ = true;
  if (connection_.rnr_nak_lost) [[unlikely]]
    return;
  observe(TransportEvent::kRnrNakSent);
  acknowledge(packet.bth.psn, wire::Syndrome::rnr_nak(connection_.min_rnr_timer));
}

// --- answering

void Responder::acknowledge(Psn psn, wire::Syndrome syndrome) noexcept {
  if (!connection_.reliable) return;
  if (tail_ != next_.reply && syndrome.kind() == wire::SyndromeKind::kAck) {
    Reply& last = at(tail_ - 1);
    if (last.kind == ReplyKind::kAcknowledge && last.syndrome.kind() == wire::SyndromeKind::kAck) {
      last.psn = psn;
      last.msn = msn_;
      return;
    }
  }
  reply({ReplyKind::kAcknowledge, syndrome, psn, msn_, 0, {}, 0, 0, false});
}

// A read or an atomic was accepted: its answer waits, and is remembered in case that it gets lost.
void Responder::answer(ReplyKind kind, Psn psn, std::uint64_t address, MemoryKey rkey, std::uint32_t length) noexcept {
  const std::uint32_t packets = kind == ReplyKind::kRead ? packets_of(length) : 1;
  msn_ = (msn_ + 1) & Psn::kMask;
  expected_ = expected_ + packets;
  resources_[next_resource_] = {kind, psn, packets, address, rkey, length, shared_queue_};
  next_resource_ = (next_resource_ + 1) % resources_.size();
  ++open_;
  reply({kind, wire::Syndrome::ack(wire::kNoCreditLimit), psn, msn_, address, rkey, length, shared_queue_, true});
}

// What is neither a first answer nor has room is left out: the other end will ask once more.
void Responder::reply(const Reply& reply) noexcept {
  if (!reply.is_first) {
    const std::uint64_t others = tail_ - head_.reply - open_;
    const bool is_nak = reply.syndrome.kind() != wire::SyndromeKind::kAck;
    const std::size_t room = replies_.size() - resources_.size() - (is_nak ? 0 : 1);  // the last place is for a NAK
    if (others >= room || repeats_last(reply)) return;
  }
  at(tail_++) = reply;
}

// One that still waits tells of all that came meanwhile.
void Responder::tell_what_is_kept() noexcept {
  if (tail_ != next_.reply && at(tail_ - 1).kind == ReplyKind::kSelective) {
    at(tail_ - 1).psn = expected_;
    at(tail_ - 1).msn = msn_;
    return;
  }
  reply({ReplyKind::kSelective, wire::Syndrome::ack(wire::kNoCreditLimit), expected_, msn_, 0, {}, 0, 0, false});
}

wire::SelectiveEth Responder::arrived_behind(Psn psn) const noexcept {
  wire::SelectiveEth arrived;
  for (std::uint32_t i = 0; i < wire::SelectiveEth::kPackets; ++i) {
    const Psn behind = psn + 1 + i;
    const bool done = behind.distance_from(expected_) < 0;
    if (done || (early_ != nullptr && early_->has(behind))) arrived.add(i);
  }
  return arrived;
}

// Whether the last answer that waits says the same.
bool Responder::repeats_last(const Reply& reply) noexcept {
  if (tail_ == next_.reply || (tail_ == next_.reply + 1 && next_.packet != 0)) return false;
  const Reply& last = at(tail_ - 1);
  return last.kind == reply.kind && last.psn == reply.psn && last.syndrome == reply.syndrome &&
         last.length == reply.length;
}

// The newest whose PSNs hold `psn`; nullptr where none is remembered.
const Responder::Resource* Responder::resource_of(Psn psn) const noexcept {
  for (std::size_t back = 1; back <= resources_.size(); ++back) {
    const Resource& known = resources_[(next_resource_ + resources_.size() - back) % resources_.size()];
    if (known.kind == ReplyKind::kAcknowledge) break;
    const std::int32_t into = psn.distance_from(known.psn);
    if (into >= 0 && static_cast<std::uint32_t>(into) < known.packets) return &known;
  }
  return nullptr;
}

// A request from before `expected_`: what it did stays done, what was answered is answered again.
void Responder::on_duplicate(const wire::Packet& packet, Outcome& outcome) noexcept {
  observe(TransportEvent::kDuplicateRequest);
  const Psn psn = packet.bth.psn;
  const auto& row = wire::row_of(packet.bth.opcode);
  if (row.operation == wire::Operation::kSend || row.operation == wire::Operation::kWrite) {
    if (has_early() && !silent_) return tell_what_is_kept();
    acknowledge(expected_ + Psn::kMask, wire::Syndrome::ack(wire::kNoCreditLimit));  // the one before it
    return;
  }
  const Resource* known = resource_of(psn);
  if (known == nullptr || known->kind != kind_of_answer(row.operation)) {
    outcome.drop = Drop::kDuplicateRequest;
    return;
  }
  Reply again{known->kind,
              wire::Syndrome::ack(wire::kNoCreditLimit),
              psn,
              msn_,
              known->address,
              known->rkey,
              known->length,
              known->shared_queue,
              false};
  if (known->kind == ReplyKind::kRead) {
    const auto into = static_cast<std::uint32_t>(psn.distance_from(known->psn));
    const std::uint64_t offset = std::uint64_t{into} * connection_.mtu;
    const bool same = packet.reth.rkey == known->rkey && packet.reth.address == known->address + offset &&
                      packet.reth.length <= known->length - offset &&
                      (xrc_ == nullptr || packet.xrceth.srqn == known->shared_queue);
    if (!same) {
      outcome.drop = Drop::kDuplicateRequest;
      return;
    }
    again.address = packet.reth.address;
    again.length = packet.reth.length;
  }
  reply(again);
}

// --- packets

std::uint32_t Responder::packets_of(std::uint32_t length) const noexcept {
  return std::max(1U, (length + connection_.mtu - 1) / connection_.mtu);
}

bool Responder::poll_transmit(Instant now, std::uint8_t credits, Transmit& packet) noexcept {
  if (next_.reply == tail_ || yielded_count_ == kBatch) return false;
  if (at(next_.reply).kind == ReplyKind::kSelective && next_.reply + 1 == tail_) tell_what_is_kept();  // by now
  const Reply& reply = at(next_.reply);
  // Only the bytes of reads have a pace; all else is too small to congest anything.
  if (!pace_.is_unlimited() && reply.kind == ReplyKind::kRead && !pace_.may_send(now)) return false;
  std::uint32_t count = reply.kind == ReplyKind::kRead ? packets_of(reply.length) : 1;
  bool refused = false;
  if (reply.kind == ReplyKind::kRead && reply.length != 0) {
    // The region may have gone since the request came.
    const std::uint32_t offset = next_.packet * connection_.mtu;
    const std::uint32_t size = std::min(reply.length - offset, connection_.mtu);
    std::span<std::byte> bytes;
    refused = (xrc_ != nullptr && !reach_queue(reply.shared_queue)) ||
              !grants(kRemoteRead, reply.rkey, reply.address + offset, size, bytes);
    packet.parts[1] = bytes;
  }
  if (refused) {
    refused_ = true;
    // Nothing more of this answer. To be decided anew where the packet has to be made a second time.
    const Psn psn = reply.psn + next_.packet;
    const auto nak = wire::Syndrome::nak(NakCode::kRemoteAccessError);
    make_response({ReplyKind::kAcknowledge, nak, psn, reply.msn, 0, {}, 0, 0, false}, 0, credits, packet);
    count = next_.packet + 1;
  } else {
    make_response(reply, next_.packet, credits, packet);
  }
  if (++next_.packet == count) next_ = {next_.reply + 1, 0};
  Yielded& yielded = yielded_[yielded_count_++];
  yielded = {next_.reply, next_.packet, {}};
  if (!pace_.is_unlimited() && reply.kind == ReplyKind::kRead) yielded.spent = pace_.on_sent(now, packet.size);
  if (refused || reply.kind == ReplyKind::kAcknowledge) observe(TransportEvent::kAckSent);
  if (reply.kind == ReplyKind::kSelective) observe(TransportEvent::kSelectiveAckSent);
  return true;
}

void Responder::make_response(const Reply& reply, std::uint32_t number, std::uint8_t credits,
                              Transmit& packet) noexcept {
  wire::Packet made;
  std::uint8_t code = kAcknowledgeCode;
  std::uint32_t payload = 0;
  switch (reply.kind) {
    case ReplyKind::kAcknowledge:
      break;
    case ReplyKind::kAtomic:
      code = kAtomicAcknowledgeCode;
      made.atomic_ack_eth.original = reply.address;
      break;
    case ReplyKind::kDone:
      code = kReadOnly;
      break;
    case ReplyKind::kSelective:
      made.selective_eth = arrived_behind(reply.psn);
      break;
    case ReplyKind::kRead:
      code = read_code(number, packets_of(reply.length));
      payload = reply.length == 0 ? 0 : std::min(reply.length - number * connection_.mtu, connection_.mtu);
      break;
  }
  made.bth.opcode = reply.kind == ReplyKind::kSelective
                        ? wire::Opcode::kSelectiveAcknowledge
                        : static_cast<wire::Opcode>(static_cast<std::uint8_t>(connection_.transport) | code);
  made.bth.pkey = connection_.pkey;
  made.bth.destination_qpn = connection_.destination;
  made.bth.psn = reply.psn + number;
  made.bth.migration_request = connection_.repeats_selectively && peer_.mark(made.bth.psn, connection_.destination);
  // Counted now, for a message that may be older: fewer than there are for it, never more.
  const bool is_ack = reply.syndrome.kind() == wire::SyndromeKind::kAck;
  made.aeth = {is_ack ? wire::Syndrome::ack(credits) : reply.syndrome, reply.msn};

  const std::size_t headers = wire::encode_headers(made, payload, packet.header);
  packet.part_count = payload == 0 ? 1 : 2;
  complete_packet(connection_, own_, std::span(packet.header).first(headers), payload, packet);
}

void Responder::on_transmitted(std::size_t count) noexcept {
  count = std::min(count, yielded_count_ - transmitted_);
  if (count == 0) return;
  transmitted_ += count;
  const Position end{yielded_[transmitted_ - 1].end_reply, yielded_[transmitted_ - 1].end_packet};
  for (std::uint64_t i = head_.reply; i != end.reply; ++i) {
    if (at(i).is_first) --open_;
  }
  head_ = end;
  if (transmitted_ == yielded_count_) yielded_count_ = transmitted_ = 0;
}

std::optional<Instant> Responder::next_departure() const noexcept {
  if (pace_.is_unlimited() || next_.reply == tail_ || at(next_.reply).kind != ReplyKind::kRead) return std::nullopt;
  return pace_.free_at();
}

void Responder::rewind_transmit() noexcept {
  for (std::size_t i = transmitted_; i < yielded_count_; ++i) pace_.refund(yielded_[i].spent);
  next_ = head_;
  yielded_count_ = transmitted_ = 0;
}

}  // namespace verbena::engine
