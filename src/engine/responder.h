// The responder of a connection: carries out the requests of the other end in the order of their PSNs, and answers them
// (InfiniBand Architecture volume 1, sections 9.7 and 9.8.1). One for each RC, UC and XRC queue pair that receives.
//
//                 psn == expected            psn > expected          psn < expected
//   reliable      carried out, answered      one NAK, then silence   answered again from what is remembered
//   selective     carried out, answered      kept, and told of       answered again, and told what is kept
//   unreliable    carried out                the rest of the message is dropped; the next message is taken
//
// Selective is what is reliable and goes to an end that has said that it repeats selectively (selective_mark.h). What
// is kept changes nothing until all before it has been carried out.
//
// Answers wait in a queue in the order of their PSNs; an acknowledgement takes in the one before it that has not left
// yet. The bytes of a read leave from where they lie.
//
// Of XRC, each request says by the number of a shared receive queue whose memory it may touch, whose receives it takes
// and where that completes (responder_xrc.cc). All packets of a message name the same queue.
//
// Thread-safety: none; the receive side of a queue pair owns it.
// Ownership:     keeps a reference to the connection, and pointers to the domain and the memory table. What an XRC
//                directory gives is looked up anew in each call.
// Errors:        a packet that changes nothing is a Drop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/drop.h"
#include "base/instant.h"
#include "base/psn.h"
#include "base/qpn.h"
#include "engine/completion.h"
#include "engine/connection.h"
#include "engine/early_packets.h"
#include "engine/memory_table.h"
#include "engine/memory_window.h"
#include "engine/pace.h"
#include "engine/protection_domain.h"
#include "engine/selective_mark.h"
#include "engine/shared_receive_queue.h"
#include "engine/transmit.h"
#include "engine/transport_event.h"
#include "engine/xrc_directory.h"
#include "wire/packet.h"

namespace verbena::engine {

class Responder {
 public:
  // What a request came to beside its answer. At most one receive ends with a packet.
  struct Outcome {
    Drop drop = Drop::kNone;
    bool completes = false;  // the receive that was taken last, as `completion` says
    bool fatal = false;      // the queue pair is to go to the error state
    bool tells = false;      // with fatal: no receive told it; an asynchronous event must
    bool access = false;     // with tells: the access was refused; else the request
    Completion completion;
  };

  Responder(const Reach& reach, const Connection& connection, Qpn own, TransportObserver* observer) noexcept
      : connection_(connection), own_(own), observer_(observer), xrc_(nullptr), reach_(reach), pace_(connection) {}
  // Of XRC.
  Responder(const XrcDirectory& directory, const Connection& connection, Qpn own, TransportObserver* observer) noexcept
      : connection_(connection), own_(own), observer_(observer), xrc_(&directory), pace_(connection) {}

  // Requests are carried out from here on; the first has `expected`. Throws std::bad_alloc.
  void start(Psn expected);
  // The other end may have more reads and atomics open than before. Throws std::bad_alloc, with nothing changed.
  void grow(std::uint8_t depth);
  void reset() noexcept;

  // Receives are taken from `receives`; of XRC, from the queue that the packet names.
  void on_request(const wire::Packet& packet, ReceiveSource& receives, Outcome& outcome) noexcept;
  // Whether requests are kept that came before their turn. The next, if its turn has come; nothing where it has not.
  bool has_early() const noexcept { return early_ != nullptr && !early_->empty(); }
  std::unique_ptr<EarlyPacket> take_early() noexcept;
  // The receive that a message has begun to fill, if there is one: to be flushed. Then no more.
  std::optional<std::uint64_t> abandon_receive() noexcept;
  // Of XRC: where what on_request() or abandon_receive() has just ended completes.
  CompletionSink& xrc_completions() const noexcept { return *completions_; }

  // As those of the requester, for answers. `credits` is the code (wire/credit.h) of how many receives wait now.
  bool poll_transmit(Instant now, std::uint8_t credits, Transmit& packet) noexcept;
  void on_transmitted(std::size_t count) noexcept;
  void rewind_transmit() noexcept;
  // True once after an answer could not be given because its memory had gone: a refusal went in its place.
  bool take_refusal() noexcept { return std::exchange(refused_, false); }
  bool has_responses() const noexcept { return next_.reply != tail_; }
  // Whether some were yielded of which it is not known whether they were transmitted.
  bool has_yielded() const noexcept { return yielded_count_ != 0; }
  // When the pace lets the next answer go; nothing where it does not hold it back.
  std::optional<Instant> next_departure() const noexcept;
  // The network is congested on the way to the other end.
  void on_cnp(Instant now) noexcept { pace_.on_cnp(now); }
  void on_path() noexcept { pace_.on_path(); }
  const Pace& pace() const noexcept { return pace_; }

 private:
  static constexpr std::size_t kBatch = 16;

  static constexpr std::size_t kSpareReplies = 4;  // for what tells the other end off
  // How far behind a packet of an unreliable connection may be and still be known as late, or as a copy. One further
  // behind is taken for the first of a sender that has begun anew.
  static constexpr std::int32_t kLate = 256;

  enum class Message : std::uint8_t { kNone, kSend, kWrite };
  enum class ReplyKind : std::uint8_t { kAcknowledge, kRead, kAtomic, kDone, kSelective };
  struct Reply {
    ReplyKind kind = ReplyKind::kAcknowledge;
    wire::Syndrome syndrome;
    Psn psn;  // of the first packet
    std::uint32_t msn = 0;
    std::uint64_t address = 0;  // kRead; kAtomic: the original value
    MemoryKey rkey;
    std::uint32_t length = 0;
    std::uint32_t shared_queue = 0;  // kRead of XRC
    bool is_first = false;           // of a read or atomic; else it is an acknowledgement, or said before
  };
  // A read or an atomic that may have to be answered again.
  struct Resource {
    ReplyKind kind = ReplyKind::kAcknowledge;  // kAcknowledge: empty
    Psn psn;
    std::uint32_t packets = 0;
    std::uint64_t address = 0;  // kAtomic: the original value
    MemoryKey rkey;
    std::uint32_t length = 0;
    std::uint32_t shared_queue = 0;  // of XRC
  };
  struct Position {
    std::uint64_t reply = 0;
    std::uint32_t packet = 0;
  };
  struct Yielded {
    std::uint64_t end_reply = 0;
    std::uint32_t end_packet = 0;
    Pace::Spent spent;  // of its pace
  };

  // Steps of a request. Each answers whether to go on.
  bool in_sequence(const wire::Packet& packet, Outcome& outcome) noexcept;
  bool fits_message(const wire::Packet& packet, const wire::OpcodeRow& row, Outcome& outcome) noexcept;
  void execute(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
               Outcome& outcome) noexcept;
  void on_send(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
               Outcome& outcome) noexcept;
  void on_write(const wire::Packet& packet, const wire::OpcodeRow& row, ReceiveSource& receives,
                Outcome& outcome) noexcept;
  void on_read(const wire::Packet& packet, Outcome& outcome) noexcept;
  void on_atomic(const wire::Packet& packet, wire::Operation operation, Outcome& outcome) noexcept;
  void on_atomic_write(const wire::Packet& packet, Outcome& outcome) noexcept;
  void on_flush(const wire::Packet& packet, Outcome& outcome) noexcept;
  void on_duplicate(const wire::Packet& packet, Outcome& outcome) noexcept;
  bool keep_early(const wire::Packet& packet) noexcept;

  bool take_receive(const wire::Packet& packet, ReceiveSource& receives, Outcome& outcome) noexcept;
  void complete_receive(const wire::Packet& packet, const wire::OpcodeRow& row, WcOpcode opcode, std::uint32_t length,
                        Outcome& outcome) noexcept;
  bool grants(AccessFlags access, MemoryKey rkey, std::uint64_t address, std::uint32_t length,
              std::span<std::byte>& bytes) const noexcept;
  bool invalidate(MemoryKey key) noexcept;
  // The same for the whole of a request, of which each packet asks again.
  bool allows(AccessFlags access, const wire::Reth& request) const noexcept;
  std::uint64_t* word_of(const wire::Packet& packet, AccessFlags access, MemoryKey rkey, std::uint64_t address,
                         Outcome& outcome) noexcept;
  void finish(const wire::Packet& packet, const wire::OpcodeRow& row) noexcept;

  // XRC.
  void execute_for(const wire::Packet& packet, const wire::OpcodeRow& row, Outcome& outcome) noexcept;
  bool reach_queue(std::uint32_t number) noexcept;
  bool reach_taken() noexcept;

  // Refusals.
  void refuse(wire::NakCode code, const wire::Packet& packet, Drop drop, Outcome& outcome) noexcept;
  void fail_receive(WcStatus status, MemoryFault fault, Outcome& outcome) noexcept;
  void not_ready(const wire::Packet& packet, Outcome& outcome) noexcept;

  // Answers.
  static constexpr std::size_t replies_for(std::size_t depth) noexcept;
  static ReplyKind kind_of_answer(wire::Operation operation) noexcept;
  void acknowledge(Psn psn, wire::Syndrome syndrome) noexcept;
  void answer(ReplyKind kind, Psn psn, std::uint64_t address, MemoryKey rkey, std::uint32_t length) noexcept;
  void reply(const Reply& reply) noexcept;
  void tell_what_is_kept() noexcept;
  wire::SelectiveEth arrived_behind(Psn psn) const noexcept;
  bool repeats_last(const Reply& reply) noexcept;
  // Whether one more read or atomic may wait; where not, the other end has more open than was agreed.
  bool may_answer() const noexcept { return open_ < connection_.max_dest_rd_atomic; }
  const Resource* resource_of(Psn psn) const noexcept;
  Reply& at(std::uint64_t position) noexcept { return replies_[position % replies_.size()]; }
  const Reply& at(std::uint64_t position) const noexcept { return replies_[position % replies_.size()]; }
  std::uint32_t packets_of(std::uint32_t length) const noexcept;
  void make_response(const Reply& reply, std::uint32_t number, std::uint8_t credits, Transmit& packet) noexcept;
  void observe(TransportEvent event) const noexcept {
    if (observer_ != nullptr) observer_->on_transport_event(event);
  }

  const Connection& connection_;
  const Qpn own_;
  TransportObserver* const observer_;
  const XrcDirectory* const xrc_;  // nullptr: not of XRC
  Reach reach_;                    // of XRC: what the latest packet named

  Psn expected_;
  std::uint32_t msn_ = 0;
  bool refused_ = false;
  PeerAbility peer_;
  std::unique_ptr<EarlyPackets> early_;  // from the first packet on that came before its turn
  bool silent_ = false;                  // asked for `expected_` already; nothing more is said until it comes

  // The message that has begun.
  Message message_ = Message::kNone;
  bool has_receive_ = false;  // `receive_` was taken and is not completed
  TakenReceive receive_;
  std::uint64_t done_ = 0;  // bytes of it that have arrived
  wire::Reth write_;

  // Of XRC: the queue of the latest message, and where receives of it complete.
  std::uint32_t shared_queue_ = 0;
  std::uint64_t identity_ = 0;
  CompletionSink* completions_ = nullptr;  // valid within one call

  // A ring: [head_, tail_). One place for each read or atomic that may be open is kept free of anything else.
  std::vector<Reply> replies_;
  std::size_t open_ = 0;  // reads and atomics in it that have not been answered whole
  std::uint64_t tail_ = 0;
  Position head_;  // the first packet that is not known to be transmitted
  Position next_;  // the next packet to yield
  std::array<Yielded, kBatch> yielded_;
  std::size_t yielded_count_ = 0;
  std::size_t transmitted_ = 0;
  Pace pace_;  // of the bytes of reads

  std::vector<Resource> resources_;  // a ring of the latest
  std::size_t next_resource_ = 0;
};

}  // namespace verbena::engine
