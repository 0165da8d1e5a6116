#include "cm/machine.h"

#include <algorithm>
#include <vector>

#include "base/byte_order.h"

namespace verbena::cm {
namespace {

// As long as a packet may be under way.
constexpr Duration kTimeWait = std::chrono::seconds(1);
constexpr unsigned kRetriesOfReleased = 4;

}  // namespace

Machine::Connection* Machine::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

Machine::Connection* Machine::find(ConnectionId id, State state) {
  Connection* const connection = find(id);
  return connection != nullptr && connection->state == state && !connection->released ? connection : nullptr;
}

std::optional<State> Machine::state_of(ConnectionId id) const {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return std::nullopt;
  return found->second.state;
}

ConnectionId Machine::make(const Path& path, State state) {
  if (connections_.size() >= std::min<std::size_t>(kMostConnections, mask_)) return 0;
  ConnectionId id = 0;
  do {
    id = prefix_ | (next_++ & mask_);
  } while (id == 0 || connections_.contains(id));
  Connection& connection = connections_[id];
  connection.state = state;
  connection.path = path;
  connection.transaction = id;
  return id;
}

void Machine::erase(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.counted) by_peer_.erase({found->second.path.remote, found->second.remote_id});
  connections_.erase(found);
}

wire::Mad Machine::send(Connection& connection, const wire::ConnectionMessage& message) {
  const wire::Mad mad = wire::encode_connection_message(message, connection.transaction);
  put_out(connection, mad);
  return mad;
}

void Machine::tell(ConnectionId id, const Connection& connection, EventKind kind,
                   const wire::ConnectionMessage& message, bool timed_out) {
  if (!connection.released) events_.push_back({kind, id, connection.path, timed_out, message});
}

void Machine::tell_disconnected(ConnectionId id, Connection& connection, const wire::ConnectionMessage& message,
                                bool timed_out) {
  if (!std::exchange(connection.disconnect_told, true)) {
    tell(id, connection, EventKind::kDisconnected, message, timed_out);
  }
}

// --- what the owner wants

ConnectionId Machine::connect(const Path& path, wire::ConnectRequest request, Instant now) {
  const ConnectionId id = make(path, State::kRequestSent);
  if (id == 0) return 0;
  Connection& connection = connections_[id];
  request.local_id = id;
  request.remote_response_timeout = kResponseTimeout;
  request.local_response_timeout = kResponseTimeout;
  request.most_retries = kMostRetries;
  connection.local_guid = request.local_guid;
  connection.sending.start(send(connection, request), now);
  return id;
}

ConnectionId Machine::ask(const Path& path, wire::ServiceRequest request, Instant now) {
  const ConnectionId id = make(path, State::kServiceAsked);
  if (id == 0) return 0;
  Connection& connection = connections_[id];
  request.request_id = id;
  connection.sending.start(send(connection, request), now);
  return id;
}

bool Machine::ask_for_time(ConnectionId id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return false;
  wire::MoreTime message{.local_id = id, .remote_id = connection->remote_id, .service_timeout = kServiceTimeout};
  if (connection->state == State::kReplyReceived) {
    message.message = wire::Answered::kReply;
  } else if (connection->state != State::kRequestReceived) {
    return false;
  }
  connection->last = send(*connection, message);
  return true;
}

bool Machine::reply(ConnectionId id, wire::ConnectReply reply, Instant now) {
  Connection* const connection = find(id, State::kRequestReceived);
  if (connection == nullptr) return false;
  reply.local_id = id;
  reply.remote_id = connection->remote_id;
  connection->local_guid = reply.local_guid;
  connection->last = send(*connection, reply);
  connection->sending.start(connection->last, now);
  connection->state = State::kReplySent;
  return true;
}

bool Machine::establish(ConnectionId id, Instant) {
  Connection* const connection = find(id, State::kReplyReceived);
  if (connection == nullptr) return false;
  connection->last = send(*connection, wire::ReadyToUse{.local_id = id, .remote_id = connection->remote_id});
  connection->state = State::kEstablished;
  return true;
}

bool Machine::established(ConnectionId id, Instant) {
  Connection* const connection = find(id);
  if (connection == nullptr) return false;
  if (connection->state == State::kEstablished) return true;
  if (connection->state != State::kReplySent) return false;
  connection->sending.stop();
  connection->state = State::kEstablished;
  tell(id, *connection, EventKind::kEstablished);
  return true;
}

bool Machine::answer(ConnectionId id, wire::ServiceReply reply, Instant now) {
  Connection* const connection = find(id, State::kServiceRequested);
  if (connection == nullptr) return false;
  reply.request_id = connection->remote_id;
  connection->last = send(*connection, reply);
  connection->state = State::kServiceAnswered;
  connection->ends_at = now + kAnswerKept;
  return true;
}

bool Machine::reject(ConnectionId id, Reason reason, std::span<const std::byte> private_data, Instant now) {
  Connection* const connection = find(id);
  if (connection == nullptr) return false;
  if (connection->state == State::kServiceRequested) {
    const auto status = reason == Reason::kInvalidServiceId ? ServiceStatus::kUnsupported : ServiceStatus::kRejected;
    wire::ServiceReply refusal{.status = static_cast<std::uint8_t>(status)};
    std::copy_n(private_data.begin(), std::min(private_data.size(), refusal.private_data.size()),
                refusal.private_data.begin());
    connection->refused = true;
    return answer(id, refusal, now);
  }
  const bool of_request = connection->state == State::kRequestReceived || connection->state == State::kRequestSent;
  if (!of_request && connection->state != State::kReplyReceived && connection->state != State::kReplySent) return false;
  wire::Rejection rejection{.local_id = id,
                            .remote_id = connection->remote_id,
                            .message = of_request ? wire::Answered::kRequest : wire::Answered::kReply,
                            .reason = static_cast<std::uint16_t>(reason)};
  std::copy_n(private_data.begin(), std::min(private_data.size(), rejection.private_data.size()),
              rejection.private_data.begin());
  if (reason == Reason::kTimeout && connection->local_guid != 0) {
    // One who has no number of ours yet finds the connection by this and by our number.
    store_be64(rejection.information.data(), connection->local_guid);
    rejection.information_length = sizeof connection->local_guid;
  }
  send(*connection, rejection);
  erase(id);
  return true;
}

void Machine::start_disconnect(ConnectionId id, Connection& connection, Instant now) {
  const wire::DisconnectRequest request{
      .local_id = id, .remote_id = connection.remote_id, .remote_qpn = connection.remote_qpn};
  connection.sending.start(send(connection, request), now, connection.released ? kRetriesOfReleased : kMostRetries);
  connection.state = State::kDisconnectSent;
}

void Machine::enter_time_wait(Connection& connection, Instant now) {
  connection.sending.stop();
  connection.state = State::kTimeWait;
  connection.ends_at = now + kTimeWait;
}

bool Machine::disconnect(ConnectionId id, Instant now) {
  Connection* const connection = find(id);
  if (connection == nullptr) return false;
  switch (connection->state) {
    case State::kEstablished:
    case State::kReplySent:
      connection->sending.stop();
      start_disconnect(id, *connection, now);
      return true;
    case State::kDisconnectReceived:
      connection->last = send(*connection, wire::DisconnectReply{.local_id = id, .remote_id = connection->remote_id});
      enter_time_wait(*connection, now);
      return true;
    case State::kDisconnectSent:
    case State::kTimeWait:
      return true;
    case State::kRequestSent:
    case State::kRequestReceived:
    case State::kReplyReceived:
    case State::kServiceAsked:
    case State::kServiceRequested:
    case State::kServiceAnswered:
      return false;
  }
  return false;
}

void Machine::release(ConnectionId id, Instant now) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  std::erase_if(events_, [id](const Event& event) { return event.id == id; });
  connection->released = true;
  switch (connection->state) {
    case State::kRequestSent:
      reject(id, Reason::kTimeout, {}, now);
      return;
    case State::kRequestReceived:
    case State::kReplyReceived:
    case State::kReplySent:
      reject(id, Reason::kConsumer, {}, now);
      return;
    case State::kEstablished:
      start_disconnect(id, *connection, now);
      return;
    case State::kDisconnectReceived:
      disconnect(id, now);
      return;
    case State::kServiceAsked:
    case State::kServiceRequested:
      erase(id);
      return;
    case State::kServiceAnswered:
      if (connection->refused) erase(id);
      return;
    case State::kDisconnectSent:
    case State::kTimeWait:
      return;
  }
}

// --- time

void Machine::give_up(ConnectionId id, Connection& connection, Instant now) {
  if (connection.state == State::kDisconnectSent) {
    tell_disconnected(id, connection, wire::ConnectionMessage{}, true);
    enter_time_wait(connection, now);
    return;
  }
  tell(id, connection, EventKind::kUnreachable);
  if (connection.state == State::kRequestSent || connection.state == State::kReplySent) {
    reject(id, Reason::kTimeout, {}, now);
  } else {
    erase(id);
  }
}

void Machine::on_timeout(Instant now) {
  std::vector<ConnectionId> due;
  for (const auto& [id, connection] : connections_) {
    const bool ends = connection.ends_at != Instant{} && connection.ends_at <= now;
    if (ends || (connection.sending.running() && connection.sending.due() <= now)) due.push_back(id);
  }
  std::sort(due.begin(), due.end());
  for (const ConnectionId id : due) {
    Connection& connection = connections_[id];
    if (connection.ends_at != Instant{} && connection.ends_at <= now) {
      if (connection.state == State::kTimeWait) tell(id, connection, EventKind::kTimeWaitOver);
      erase(id);
    } else if (connection.sending.again(now)) {
      put_out(connection, connection.sending.mad());
    } else {
      connection.sending.stop();
      give_up(id, connection, now);
    }
  }
}

std::optional<Instant> Machine::next_timeout() const {
  std::optional<Instant> next;
  const auto consider = [&next](Instant at) {
    if (!next || at < *next) next = at;
  };
  for (const auto& [id, connection] : connections_) {
    if (connection.ends_at != Instant{}) consider(connection.ends_at);
    if (connection.sending.running()) consider(connection.sending.due());
  }
  return next;
}

std::optional<Transmission> Machine::poll_transmit() {
  if (transmissions_.empty()) return std::nullopt;
  Transmission first = transmissions_.front();
  transmissions_.pop_front();
  return first;
}

std::optional<Event> Machine::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event first = events_.front();
  events_.pop_front();
  return first;
}

}  // namespace verbena::cm
