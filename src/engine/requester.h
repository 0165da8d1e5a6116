// The requester of a connection: makes packets of posted requests, and completes requests by what the other end answers
// (InfiniBand Architecture volume 1, sections 9.7 and 9.8.2). One for each RC, UC and XRC queue pair that sends.
//
//   PSN    ... done │ waiting for an answer │ may be sent │ beyond the window ...
//   ────────────────┴───────────────────────┴─────────────┴──────────────>
//                unacked_                 highest_
//
// Each request takes its PSNs when it is posted. A cursor (request, packet within it) says what is sent next; to send
// again is to set the cursor back. RDMA reads longer than a part of the window are asked for in pieces, each a read of
// its own, so that the answers never outrun what this end can take.
//
// Where the other end tells how many receives it has (end-to-end credits, section 9.7.7.2), no more messages that need
// one are sent, but for a single one beyond: it finds out whether there are more by now.
//
// Where both ends repeat selectively (selective_mark.h), what is missing is sent again by itself while the cursor goes
// on (requester_repeat.cc): requests by what the other end tells of those that it has, answers by those that came
// early.
//
// Unreliable connections use the same cursor: what is transmitted is done.
//
// Thread-safety: none; the send side of a queue pair owns it.
// Ownership:     keeps references to the send queue, the domain, the memory table and the connection.
// Errors:        a bad packet is a Drop. What fails a request is told by failure().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/drop.h"
#include "base/instant.h"
#include "base/psn.h"
#include "base/qpn.h"
#include "engine/completion.h"
#include "engine/connection.h"
#include "engine/memory_table.h"
#include "engine/memory_window.h"
#include "engine/pace.h"
#include "engine/protection_domain.h"
#include "engine/selective_mark.h"
#include "engine/selective_repeat.h"
#include "engine/send_queue.h"
#include "engine/send_request.h"
#include "engine/transmit.h"
#include "engine/transport_event.h"
#include "wire/packet.h"

namespace verbena::engine {

struct RequestKind;

class Requester {
 public:
  // Why the oldest request that is not done fails.
  struct Failure {
    WcStatus status = WcStatus::kSuccess;
    MemoryFault fault = MemoryFault::kNone;
  };

  Requester(SendQueue& queue, const ProtectionDomain& domain, const MemoryTable& memory, const Connection& connection,
            Qpn own, TransportObserver* observer, WindowBinder* windows) noexcept
      : queue_(queue),
        domain_(domain),
        memory_(memory),
        connection_(connection),
        own_(own),
        observer_(observer),
        windows_(windows),
        pace_(connection) {}

  // The connection may send from here on; the first packet has `first`.
  void start(Psn first) noexcept;
  void reset() noexcept;
  // After a failure that the connection survives, with nothing left in the queue.
  void resume() noexcept;

  // Fills what is the connection's in a request just posted, and gives it its PSNs.
  void prepare(const SendRequest& request, SendWqe& wqe) noexcept;
  // The same for one that fails when its turn comes.
  void prepare_refused(SendWqe& wqe) noexcept;

  // The next packet, if one may go now. `may_begin`: requests may be begun, and not only continued.
  bool poll_transmit(Instant now, bool may_begin, Transmit& packet) noexcept;
  // The oldest `count` of those yielded are on the network.
  void on_transmitted(std::size_t count) noexcept;
  // Those yielded and not transmitted are yielded again.
  void rewind_transmit() noexcept;
  // Whether poll_transmit() would yield something if only the transport took it, now or once the pace allows.
  bool has_sendable(bool may_begin) const noexcept;

  // An acknowledgement or an answer. kNone: it was of use, or a repetition.
  Drop on_response(const wire::Packet& packet, Instant now) noexcept;
  void on_timeout(Instant now) noexcept;
  // The network is congested on the way to the other end.
  void on_cnp(Instant now) noexcept { pace_.on_cnp(now); }
  void on_path() noexcept { pace_.on_path(); }
  const Pace& pace() const noexcept { return pace_; }
  // When on_timeout() should be called next, and poll_transmit() after it.
  std::optional<Instant> next_timeout() const noexcept;
  // When the pace of the path lets the next packet go; nothing where it waits for something else.
  std::optional<Instant> next_departure(bool may_begin) const noexcept;

  // Every request before this position is done.
  std::uint64_t done() const noexcept { return done_; }
  // Set once the request at done() has failed; nothing is sent or heard any more.
  const std::optional<Failure>& failure() const noexcept { return failure_; }

 private:
  static constexpr std::size_t kBatch = 16;
  static constexpr std::uint32_t kPieceDivisor = 2;
  static constexpr std::uint32_t kRepeats = UINT32_MAX;  // in place of Cursor::reads

  struct Cursor {
    std::uint64_t request = 0;
    std::uint32_t packet = 0;  // within it
    std::uint32_t reads = 0;   // reads and atomics on their way when it is reached
  };
  enum class Step : std::uint8_t { kPacket, kNext, kWait };

  Step step(bool may_begin, Instant now, Transmit& packet) noexcept;
  bool carry_out(const SendWqe& wqe) noexcept;
  bool blocked(const SendWqe& wqe) const noexcept;
  bool window_open(const SendWqe& wqe) const noexcept;
  bool make_packet(SendWqe& wqe, Transmit& packet) noexcept;
  MemoryFault fill_packet(SendWqe& wqe, std::uint32_t number, std::uint32_t end, bool again,
                          Transmit& packet) const noexcept;
  bool is_in_order(SendWqe& wqe) noexcept;
  std::span<const std::byte> make_headers(const SendWqe& wqe, std::uint32_t number, wire::Place place,
                                          std::uint32_t size, std::uint32_t payload, bool again,
                                          std::span<std::byte> room) const noexcept;
  MemoryFault add_payload(SendWqe& wqe, std::uint32_t offset, std::uint32_t size, Transmit& packet) const noexcept;
  void note_sent(const SendWqe& wqe, const Cursor& before, Instant now, const Transmit& packet) noexcept;

  std::uint64_t receives_done() const noexcept;
  bool has_credit(const SendWqe& wqe) const noexcept;
  void take_credits(wire::Syndrome syndrome) noexcept;
  std::uint32_t packets_of(const RequestKind& kind, std::uint32_t length) const noexcept;
  std::uint32_t piece_packets() const noexcept { return connection_.window / kPieceDivisor; }
  std::uint32_t piece_end(const SendWqe& wqe, std::uint32_t packet) const noexcept;

  bool acknowledge_to(Psn end, Instant now) noexcept;
  bool answers_all_before(const wire::Packet& packet, Psn end, Instant now) noexcept;
  SendWqe* answered_by(const wire::Packet& packet, Instant now, Drop& drop) noexcept;
  Drop on_answer(const wire::Packet& packet, Instant now) noexcept;
  void on_answered(Psn psn, bool ends_piece, bool ends_request, Instant now) noexcept;
  Drop on_acknowledge(const wire::Packet& packet, Instant now) noexcept;
  Drop on_selective_acknowledge(const wire::Packet& packet, Instant now) noexcept;
  Drop on_nak(wire::NakCode code, Instant now) noexcept;
  Drop on_rnr_nak(std::uint8_t timer_code, Instant now) noexcept;
  Drop on_read_response(const wire::Packet& packet, Instant now) noexcept;
  Drop on_atomic_acknowledge(const wire::Packet& packet, Instant now) noexcept;
  MemoryFault place(SendWqe& wqe, std::uint32_t packet, std::span<const std::byte> payload) const noexcept;
  void made_progress(Instant now) noexcept;
  enum class Again : std::uint8_t { kEverything, kOnlyWhatIsMissing };
  void retry(Instant now, Again what = Again::kEverything) noexcept;
  void go_back() noexcept;
  void restart_timer(Instant now) noexcept;

  // Selective repeat.
  struct Missing {
    std::uint64_t request = 0;
    std::uint32_t packet = 0;  // within it
    std::uint32_t end = 0;     // of those that one packet asks for
  };
  bool begin_selective() noexcept;
  bool keep_early(const wire::Packet& packet, Psn end, Instant now) noexcept;
  void deliver_early(Instant now) noexcept;
  bool all_sent_once() const noexcept;
  bool repeats_after_timeout(Instant now) noexcept;
  void reach_end_of_piece(Instant now) noexcept;
  bool repeat(Instant now, Transmit& packet) noexcept;
  bool may_repeat() const noexcept {
    return selective_ != nullptr && selective_->in_pass() && !failure_ && !rnr_until_;
  }
  std::optional<Missing> next_missing() const noexcept;
  std::optional<Missing> missing_of(std::uint64_t request, std::uint32_t packet) const noexcept;

  // The request at done() fails.
  void fail(WcStatus status, MemoryFault fault = MemoryFault::kNone) noexcept { failure_ = Failure{status, fault}; }
  // The request at the cursor fails once those before it are done.
  void fail_later(WcStatus status, MemoryFault fault = MemoryFault::kNone) noexcept;
  void settle_failure() noexcept;
  bool is_well_sized(const SendWqe& wqe) const noexcept;
  void observe(TransportEvent event) const noexcept {
    if (observer_ != nullptr) observer_->on_transport_event(event);
  }

  SendQueue& queue_;
  const ProtectionDomain& domain_;
  const MemoryTable& memory_;
  const Connection& connection_;
  const Qpn own_;
  TransportObserver* const observer_;
  WindowBinder* const windows_;

  Psn next_psn_;  // for the next request posted
  Psn unacked_;   // the oldest that is not answered
  Psn highest_;   // one past the highest that was sent
  std::uint64_t done_ = 0;
  std::uint64_t next_receive_number_ = 0;  // for the next request posted
  // How many requests that take a receive may have been sent, ever, as the other end said last; nothing: any number.
  std::optional<std::uint64_t> receive_limit_;
  Cursor cursor_;
  std::optional<Failure> failure_;
  std::optional<Failure> fault_;  // of the request at the cursor, which waits for those before it

  // The cursor before each packet that was yielded and is not known to be transmitted, with its PSNs' end. Where it
  // repeats what is behind the cursor: its first PSN in place of `packet`, and kRepeats.
  struct Yielded {
    Cursor before;
    Psn end;
    Pace::Spent spent;  // of its pace
  };
  std::array<Yielded, kBatch> yielded_;
  std::size_t yielded_count_ = 0;
  std::size_t transmitted_ = 0;  // of those yielded
  Instant last_poll_;

  std::optional<Instant> deadline_;   // when an answer is overdue
  std::optional<Instant> rnr_until_;  // the other end asked for time
  bool retrying_ = false;             // gone back, and nothing new was answered since
  std::uint8_t retries_left_ = 0;
  std::uint8_t rnr_left_ = 0;
  PeerAbility peer_;
  Pace pace_;
  std::unique_ptr<SelectiveRepeat> selective_;  // from the first packet on that was missing
};

}  // namespace verbena::engine
