// Requests, from the PSN to what they do. The answers: responder_reply.cc.
#include "engine/responder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "engine/sge_range.h"
#include "wire/credit.h"

namespace verbena::engine {
namespace {

using wire::NakCode;
using wire::Operation;

constexpr std::uint32_t kWord = sizeof(std::uint64_t);  // what atomics work on

std::uint64_t length_of(std::span<const Sge> sges) noexcept {
  std::uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return sum;
}

}  // namespace

// Between two reads at most one acknowledgement waits; and each may have to be answered a second time.
constexpr std::size_t Responder::replies_for(std::size_t depth) noexcept {
  return 4 * depth + kSpareReplies;
}

void Responder::start(Psn expected) {
  const std::size_t depth = std::max<std::size_t>(1, connection_.max_dest_rd_atomic);
  replies_.assign(replies_for(depth), {});
  resources_.assign(depth, {});
  next_resource_ = 0;
  expected_ = expected;
  msn_ = 0;
}

void Responder::grow(std::uint8_t depth) {
  if (depth <= resources_.size()) return;
  std::vector<Reply> replies(replies_for(depth));
  std::vector<Resource> resources(depth);
  for (std::uint64_t i = head_.reply; i != tail_; ++i) replies[i % replies.size()] = at(i);
  for (std::size_t i = 0; i < resources_.size(); ++i) {  // the oldest first
    resources[i] = resources_[(next_resource_ + i) % resources_.size()];
  }
  next_resource_ = resources_.size();
  replies_ = std::move(replies);
  resources_ = std::move(resources);
}

void Responder::reset() noexcept {
  peer_.reset();
  early_.reset();
  silent_ = refused_ = false;
  message_ = Message::kNone;
  has_receive_ = false;
  tail_ = 0;
  open_ = 0;
  head_ = next_ = {};
  yielded_count_ = transmitted_ = 0;
  pace_.reset();
  std::fill(resources_.begin(), resources_.end(), Resource{});
}

std::optional<std::uint64_t> Responder::abandon_receive() noexcept {
  if (!has_receive_) return std::nullopt;
  const bool completes = xrc_ == nullptr || reach_taken();
  has_receive_ = false;
  if (!completes) return std::nullopt;
  return receive_.wr_id;
}

void Responder::on_request(const wire::Packet& packet, ReceiveSource& receives, Outcome& outcome) noexcept {
  const wire::OpcodeRow& row = wire::row_of(packet.bth.opcode);
  if (!in_sequence(packet, outcome)) return;
  if (connection_.repeats_selectively && !peer_.is_able()) peer_.on_packet(packet.bth);
  if (!fits_message(packet, row, outcome)) return;
  if (xrc_ != nullptr) return execute_for(packet, row, outcome);
  execute(packet, row, receives, outcome);
}

bool Responder::in_sequence(const wire::Packet& packet, Outcome& outcome) noexcept {
  const std::int32_t ahead = packet.bth.psn.distance_from(expected_);
  if (ahead == 0) {
    silent_ = false;
    return true;
  }
  if (!connection_.reliable) {
    if (ahead < 0 && ahead >= -kLate) {
      outcome.drop = Drop::kOutOfSequence;
      return false;
    }
    // Something was lost: the message it belonged to is, too, and its receive serves the next one.
    message_ = Message::kNone;
    if (wire::row_of(packet.bth.opcode).starts_message()) {
      expected_ = packet.bth.psn;
      return true;
    }
    outcome.drop = Drop::kOutOfSequence;
    return false;
  }
  if (ahead < 0) {
    on_duplicate(packet, outcome);
    return false;
  }
  observe(TransportEvent::kOutOfSequence);
  if (peer_.is_able() && keep_early(packet)) {
    if (!silent_) tell_what_is_kept();
    return false;
  }
  outcome.drop = Drop::kOutOfSequence;
  if (!std::exchange(silent_, true)) acknowledge(expected_, wire::Syndrome::nak(NakCode::kPsnSequenceError));
  return false;
}

bool Responder::keep_early(const wire::Packet& packet) noexcept {
  if (early_ == nullptr) early_.reset(new (std::nothrow) EarlyPackets);
  if (early_ == nullptr) return false;
  early_->advance(expected_);
  if (!early_->keep(packet)) return false;
  observe(TransportEvent::kKeptEarly);
  return true;
}

std::unique_ptr<EarlyPacket> Responder::take_early() noexcept {
  early_->advance(expected_);
  return early_->take(expected_);
}

// The opcode is one that may come now, and the payload as long as its place calls for.
bool Responder::fits_message(const wire::Packet& packet, const wire::OpcodeRow& row, Outcome& outcome) noexcept {
  const bool continues = row.place == wire::Place::kMiddle || row.place == wire::Place::kLast;
  Message kind = Message::kNone;
  if (row.operation == Operation::kSend) kind = Message::kSend;
  if (row.operation == Operation::kWrite) kind = Message::kWrite;
  const bool ordered = continues ? message_ == kind : message_ == Message::kNone;
  const std::size_t size = packet.payload.size();
  bool sized = true;
  if (kind == Message::kNone) {
    sized = size == (row.operation == Operation::kAtomicWrite ? kWord : 0);
  } else if (!row.ends_message()) {
    sized = size == connection_.mtu;
  } else {
    sized = size <= connection_.mtu && (row.place == wire::Place::kOnly || size != 0);
  }
  if (ordered && sized) return true;
  if (!connection_.reliable && !ordered && !continues) {  // the last message lacks its end
    message_ = Message::kNone;
    if (sized) return true;
  }
  refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
  return false;
}

void Responder::execute(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
                        Outcome& outcome) noexcept {
  switch (row.operation) {
    case Operation::kSend:
      return on_send(packet, row, receives, outcome);
    case Operation::kWrite:
      return on_write(packet, row, receives, outcome);
    case Operation::kReadRequest:
      return on_read(packet, outcome);
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      return on_atomic(packet, row.operation, outcome);
    case Operation::kAtomicWrite:
      return on_atomic_write(packet, outcome);
    case Operation::kFlush:
      return on_flush(packet, outcome);
    case Operation::kReadResponse:
    case Operation::kAcknowledge:
    case Operation::kAtomicAcknowledge:
    case Operation::kCongestion:
    case Operation::kSelectiveAcknowledge:
      break;
  }
  outcome.drop = Drop::kOpcodeNotForQp;
}

// --- sends

bool Responder::take_receive(const wire::Packet& packet, ReceiveSource& receives, Outcome& outcome) noexcept {
  if (has_receive_) return true;  // of a message that was lost half way
  if (receives.take(0, receive_) != Take::kTaken) {
    not_ready(packet, outcome);
    return false;
  }
  has_receive_ = true;
  return true;
}

void Responder::on_send(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
                        Outcome& outcome) noexcept {
  if (row.starts_message()) {
    if (!take_receive(packet, receives, outcome)) return;
    done_ = 0;
  }
  if (done_ + packet.payload.size() > length_of(receive_.list())) {
    acknowledge(packet.bth.psn, wire::Syndrome::nak(NakCode::kInvalidRequest));
    outcome.drop = Drop::kReceiveTooSmall;
    return fail_receive(WcStatus::kLocalLengthError, MemoryFault::kNone, outcome);
  }
  MemoryPieces pieces;
  const auto fault =
      resolve_range(*reach_.memory, *reach_.domain, receive_.list(), done_, packet.payload.size(), kLocalWrite, pieces);
  if (fault != MemoryFault::kNone) {
    acknowledge(packet.bth.psn, wire::Syndrome::nak(NakCode::kRemoteOperationalError));
    outcome.drop = Drop::kReceiveProtection;
    return fail_receive(WcStatus::kLocalProtectionError, fault, outcome);
  }
  if (row.carries_invalidate() && !invalidate(packet.ieth.rkey)) {
    return refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
  }
  store(packet.payload, pieces);
  done_ += packet.payload.size();
  message_ = Message::kSend;
  if (row.ends_message()) {
    complete_receive(packet, row, WcOpcode::kReceive, static_cast<std::uint32_t>(done_), outcome);
  }
  finish(packet, row);
}

void Responder::complete_receive(const wire::Packet& packet, const wire::OpcodeRow& row, WcOpcode opcode,
                                 std::uint32_t length, Outcome& outcome) noexcept {
  has_receive_ = false;
  outcome.completes = true;
  Completion& completion = outcome.completion;
  completion.wr_id = receive_.wr_id;
  completion.opcode = opcode;
  completion.byte_length = length;
  completion.qp_number = own_.value();
  completion.source_qp = connection_.destination.value();
  completion.solicited = packet.bth.solicited;
  if (row.carries_immediate()) {
    completion.immediate = packet.imm_dt.network_order;
    completion.flags |= kWcWithImmediate;
  }
  if (row.carries_invalidate()) {
    completion.immediate = packet.ieth.rkey.value();
    completion.flags |= kWcWithInvalidate;
  }
}

// What a send with invalidate takes back.
bool Responder::invalidate(MemoryKey key) noexcept {
  return reach_.windows != nullptr && reach_.windows->invalidate(*reach_.domain, key, own_) == MemoryFault::kNone;
}

// --- one-sided requests

bool Responder::grants(AccessFlags access, MemoryKey rkey, std::uint64_t address, std::uint32_t length,
                       std::span<std::byte>& bytes) const noexcept {
  if ((~connection_.access & access & ~kCheckOnly) != 0) return false;
  return reach_.memory->resolve_remote(*reach_.domain, rkey, address, length, access, bytes, own_) ==
         MemoryFault::kNone;
}

bool Responder::allows(AccessFlags access, const wire::Reth& request) const noexcept {
  std::span<std::byte> bytes;
  return grants(access | kCheckOnly, request.rkey, request.address, request.length, bytes);
}

// The word that an atomic works on, at an address of its own size here and there; nullptr where it was refused.
std::uint64_t* Responder::word_of(const wire::Packet& packet, AccessFlags access, MemoryKey rkey, std::uint64_t address,
                                  Outcome& outcome) noexcept {
  std::span<std::byte> bytes;
  if (!may_answer() || address % kWord != 0) {
    refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
    return nullptr;
  }
  if (!grants(access, rkey, address, kWord, bytes)) {
    refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
    return nullptr;
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kWord != 0) {
    refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
    return nullptr;
  }
  return reinterpret_cast<std::uint64_t*>(bytes.data());
}

void Responder::on_write(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
                         Outcome& outcome) noexcept {
  std::span<std::byte> bytes;
  if (row.starts_message()) {
    write_ = packet.reth;
    done_ = 0;
    if (write_.length > kMaxMessage) {
      return refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
    }
    if (!allows(kRemoteWrite, write_)) {
      return refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
    }
  }
  const std::uint64_t end = done_ + packet.payload.size();
  if (end > write_.length || (row.ends_message() && end != write_.length)) {
    return refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
  }
  if (row.carries_immediate() && !take_receive(packet, receives, outcome)) return;
  if (!grants(kRemoteWrite, write_.rkey, write_.address + done_, static_cast<std::uint32_t>(packet.payload.size()),
              bytes)) {
    return refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
  }
  store(packet.payload, bytes);
  done_ = end;
  message_ = Message::kWrite;
  if (row.carries_immediate()) {
    complete_receive(packet, row, WcOpcode::kReceiveRdmaWithImmediate, write_.length, outcome);
  }
  finish(packet, row);
}

void Responder::on_read(const wire::Packet& packet, Outcome& outcome) noexcept {
  const wire::Reth& read = packet.reth;
  if (!may_answer() || read.length > kMaxMessage) {
    return refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
  }
  if (!allows(kRemoteRead, read)) {
    return refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
  }
  answer(ReplyKind::kRead, packet.bth.psn, read.address, read.rkey, read.length);
}

void Responder::on_atomic(const wire::Packet& packet, Operation operation, Outcome& outcome) noexcept {
  const wire::AtomicEth& request = packet.atomic_eth;
  std::uint64_t* const target = word_of(packet, kRemoteAtomic, request.rkey, request.address, outcome);
  if (target == nullptr) return;
  // Sequentially consistent: other queue pairs and the program itself work on the same word.
  std::atomic_ref word(*target);
  std::uint64_t original = request.compare;
  if (operation == Operation::kFetchAdd) {
    original = word.fetch_add(request.swap_or_add);
  } else {
    word.compare_exchange_strong(original, request.swap_or_add);
  }
  answer(ReplyKind::kAtomic, packet.bth.psn, original, request.rkey, kWord);
}

void Responder::on_atomic_write(const wire::Packet& packet, Outcome& outcome) noexcept {
  if (packet.reth.length != kWord) {
    return refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
  }
  std::uint64_t* const target = word_of(packet, kRemoteWrite, packet.reth.rkey, packet.reth.address, outcome);
  if (target == nullptr) return;
  std::uint64_t value = 0;
  std::memcpy(&value, packet.payload.data(), kWord);
  std::atomic_ref(*target).store(value);
  answer(ReplyKind::kDone, packet.bth.psn, 0, packet.reth.rkey, 0);
}

// What was written is visible as soon as it is stored: there is nothing to flush but the question to answer.
void Responder::on_flush(const wire::Packet& packet, Outcome& outcome) noexcept {
  constexpr std::uint8_t kGlobalVisibility = 1;
  constexpr std::uint8_t kPersistence = 2;
  AccessFlags wanted = 0;
  if ((packet.feth.placement & kGlobalVisibility) != 0) wanted |= kFlushGlobal;
  if ((packet.feth.placement & kPersistence) != 0) wanted |= kFlushPersistent;
  if (!may_answer() || wanted == 0) {
    return refuse(NakCode::kInvalidRequest, packet, Drop::kInvalidRequest, outcome);
  }
  if (!allows(wanted, packet.reth)) {
    return refuse(NakCode::kRemoteAccessError, packet, Drop::kRemoteAccess, outcome);
  }
  answer(ReplyKind::kDone, packet.bth.psn, 0, packet.reth.rkey, 0);
}

// The packet of a send or write was carried out.
void Responder::finish(const wire::Packet& packet, const wire::OpcodeRow& row) noexcept {
  ++expected_;
  if (row.ends_message()) {
    message_ = Message::kNone;
    msn_ = (msn_ + 1) & Psn::kMask;
  }
  if (connection_.reliable && packet.bth.ack_request) {
    acknowledge(packet.bth.psn, wire::Syndrome::ack(wire::kNoCreditLimit));
  }
}

}  // namespace verbena::engine
