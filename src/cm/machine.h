// The communication manager of one process as a machine: messages, calls and time in; messages, events and the next
// deadline out. It knows connections and services asked for; who listens where is its driver's business: an event
// kRequested or kServiceRequested for which there is no listener is answered by reject() and release().
//
//              connect()                                     REQ arrives
//                  │                                             │
//             kRequestSent ── REP ──> kReplyReceived        kRequestReceived ── reply() ──> kReplySent
//                                          │ establish(): RTU                                  │ RTU, or established()
//                                          └────────────> kEstablished <───────────────────────┘
//                       disconnect() │          │ DREQ
//                       kDisconnectSent       kDisconnectReceived ── disconnect() ──┐
//                                 └──── DREP ────> kTimeWait <──────────────────────┘
//
//   ask() ── kServiceAsked ── SIDR_REP ──> gone     SIDR_REQ ── kServiceRequested ── answer() ──> kServiceAnswered
//
// Whatever is sent is sent again until it is answered or given up (retransmission.h); whatever comes twice is answered
// as it was the first time. A connection that its owner released stays until the other end knows.
// InfiniBand Architecture volume 1, chapter 12.
//
// Thread-safety: none; one owner at a time.
// Ownership:     values only.
// Errors:        a message that fits nothing is ignored, as the specification says; on_message() tells. A call in a
//                state that does not allow it changes nothing and returns false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/instant.h"
#include "cm/path.h"
#include "cm/reason.h"
#include "cm/retransmission.h"
#include "wire/connection_message.h"

namespace verbena::cm {

using ConnectionId = std::uint32_t;

enum class State : std::uint8_t {
  kRequestSent,
  kRequestReceived,
  kReplySent,
  kReplyReceived,
  kEstablished,
  kDisconnectSent,
  kDisconnectReceived,
  kTimeWait,
  kServiceAsked,
  kServiceRequested,
  kServiceAnswered,
};

enum class EventKind : std::uint8_t {
  kRequested,         // a ConnectRequest came
  kReplied,           // a ConnectReply
  kEstablished,       // ReadyToUse, or what stands for it
  kRejected,          // a Rejection; the connection is gone
  kUnreachable,       // nobody answered; gone
  kDisconnected,      // by either side
  kTimeWaitOver,      // nothing of it is under way any more; gone
  kServiceRequested,  // a ServiceRequest
  kServiceReplied,    // a ServiceReply; gone
};

struct Event {
  EventKind kind = EventKind::kEstablished;
  ConnectionId id = 0;
  Path path;
  bool timed_out = false;  // of kDisconnected: the other end did not answer
  wire::ConnectionMessage message;
};

struct Transmission {
  Path path;
  wire::Mad mad;
};

enum class Reception : std::uint8_t {
  kTaken,
  kNotUnderstood,  // no message of connections
  kFitsNothing,    // of a connection that is not there, or not in a state for it
  kFull,           // no room for another connection
};

class Machine {
 public:
  static constexpr std::size_t kMostConnections = 65536;
  static constexpr std::size_t kMostOfOthers = kMostConnections / 2;  // that other ends began

  // Ids are `prefix` with the bits of `mask` counted up from `first`.
  Machine(std::uint32_t prefix, std::uint32_t mask, std::uint32_t first) noexcept
      : prefix_(prefix & ~mask), mask_(mask), next_(first) {}

  // Ids and time-outs of the message are filled in here. 0 where there is no room.
  ConnectionId connect(const Path& path, wire::ConnectRequest request, Instant now);
  ConnectionId ask(const Path& path, wire::ServiceRequest request, Instant now);
  // The other end may take it that this takes a while.
  bool ask_for_time(ConnectionId id);
  bool reply(ConnectionId id, wire::ConnectReply reply, Instant now);
  bool establish(ConnectionId id, Instant now);
  bool answer(ConnectionId id, wire::ServiceReply reply, Instant now);
  // Ends an attempt from either side; the connection is gone then.
  bool reject(ConnectionId id, Reason reason, std::span<const std::byte> private_data, Instant now);
  // Asks the other end to disconnect, or agrees to what it asked.
  bool disconnect(ConnectionId id, Instant now);
  // Its packets arrive, though its ReadyToUse did not.
  bool established(ConnectionId id, Instant now);
  // No events any more. What the other end must still be told is told.
  void release(ConnectionId id, Instant now);

  // `path`: to whom it came and from whom.
  Reception on_message(const Path& path, std::span<const std::byte> mad, Instant now);
  void on_timeout(Instant now);

  // Drain both after every call above.
  std::optional<Transmission> poll_transmit();
  std::optional<Event> poll_event();
  std::optional<Instant> next_timeout() const;

  std::optional<State> state_of(ConnectionId id) const;
  std::size_t size() const noexcept { return connections_.size(); }

 private:
  struct Connection {
    State state = State::kRequestSent;
    Path path;
    std::uint32_t remote_id = 0;
    Qpn remote_qpn{};
    std::uint64_t transaction = 0;
    bool released = false;
    bool disconnect_told = false;
    bool counted = false;          // in by_peer_
    bool refused = false;          // of kServiceAnswered: the other end may ask anew
    std::uint64_t local_guid = 0;  // of the device; 0: not known
    Retransmission sending;
    wire::Mad last{};   // what answers a message that comes twice
    Instant ends_at{};  // of states that end by themselves; 0: not
  };
  using Peer = std::pair<Gid, std::uint32_t>;

  Connection* find(ConnectionId id);
  Connection* find(ConnectionId id, State state);
  ConnectionId make(const Path& path, State state);
  void erase(ConnectionId id);
  void put_out(const Connection& connection, const wire::Mad& mad) { transmissions_.push_back({connection.path, mad}); }
  wire::Mad send(Connection& connection, const wire::ConnectionMessage& message);
  void tell(ConnectionId id, const Connection& connection, EventKind kind, const wire::ConnectionMessage& message = {},
            bool timed_out = false);
  void tell_disconnected(ConnectionId id, Connection& connection, const wire::ConnectionMessage& message,
                         bool timed_out = false);
  void start_disconnect(ConnectionId id, Connection& connection, Instant now);
  void enter_time_wait(Connection& connection, Instant now);
  void give_up(ConnectionId id, Connection& connection, Instant now);

  Reception on(const wire::ConnectRequest& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::MoreTime& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::Rejection& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::ConnectReply& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::ReadyToUse& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::DisconnectRequest& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::DisconnectReply& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::ServiceRequest& message, const Path& path, std::uint64_t transaction, Instant now);
  Reception on(const wire::ServiceReply& message, const Path& path, std::uint64_t transaction, Instant now);
  // The connection that a message of the other end is about; nullptr where the two do not belong together.
  Connection* match(std::uint32_t ours, std::uint32_t theirs, const Path& path);
  bool answer_again(const Peer& peer, Instant now);
  bool has_room_for_others() const noexcept { return by_peer_.size() < kMostOfOthers; }

  const std::uint32_t prefix_;
  const std::uint32_t mask_;
  std::uint32_t next_;
  std::unordered_map<ConnectionId, Connection> connections_;
  std::map<Peer, ConnectionId> by_peer_;  // those that the other end began
  std::deque<Transmission> transmissions_;
  std::deque<Event> events_;
};

}  // namespace verbena::cm
