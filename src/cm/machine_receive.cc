// What the machine does with each message that arrives.
#include "cm/machine.h"

namespace verbena::cm {

Reception Machine::on_message(const Path& path, std::span<const std::byte> mad, Instant now) {
  const auto message = wire::decode_connection_message(mad);
  if (!message) return Reception::kNotUnderstood;
  const std::uint64_t transaction = wire::transaction_of(mad);
  return std::visit([&](const auto& m) { return on(m, path, transaction, now); }, *message);
}

Machine::Connection* Machine::match(std::uint32_t ours, std::uint32_t theirs, const Path& path) {
  Connection* const connection = find(ours);
  if (connection == nullptr || connection->path.remote != path.remote) return nullptr;
  const bool known = connection->state != State::kRequestSent && connection->state != State::kServiceAsked;
  return !known || connection->remote_id == theirs ? connection : nullptr;
}

// A question that came before: what answered it answers it again. True where it did come before.
bool Machine::answer_again(const Peer& peer, Instant now) {
  const auto before = by_peer_.find(peer);
  if (before == by_peer_.end()) return false;
  Connection& connection = connections_.at(before->second);
  if (connection.state == State::kServiceAnswered) connection.ends_at = now + kAnswerKept;
  if (connection.last != wire::Mad{}) put_out(connection, connection.last);
  return true;
}

Reception Machine::on(const wire::ConnectRequest& message, const Path& path, std::uint64_t transaction, Instant now) {
  const Peer peer{path.remote, message.local_id};
  if (answer_again(peer, now)) return Reception::kTaken;
  const ConnectionId id = has_room_for_others() ? make(path, State::kRequestReceived) : 0;
  if (id == 0) return Reception::kFull;
  Connection& connection = connections_[id];
  connection.path.traffic_class = message.traffic_class;
  connection.remote_id = message.local_id;
  connection.remote_qpn = message.local_qpn;
  connection.transaction = transaction;
  connection.counted = true;
  by_peer_.emplace(peer, id);
  tell(id, connection, EventKind::kRequested, message);
  return Reception::kTaken;
}

Reception Machine::on(const wire::MoreTime& message, const Path& path, std::uint64_t, Instant now) {
  Connection* const connection = match(message.remote_id, message.local_id, path);
  if (connection == nullptr) return Reception::kFitsNothing;
  const bool fits = (connection->state == State::kRequestSent && message.message == wire::Answered::kRequest) ||
                    (connection->state == State::kReplySent && message.message == wire::Answered::kReply);
  if (!fits) return Reception::kFitsNothing;
  if (connection->state == State::kRequestSent) connection->remote_id = message.local_id;
  connection->sending.extend(now, decoded_timeout(message.service_timeout));
  return Reception::kTaken;
}

Reception Machine::on(const wire::Rejection& message, const Path& path, std::uint64_t, Instant now) {
  // One that gave up has no number for us if it never heard from here: then it names its own.
  ConnectionId id = message.remote_id;
  if (id == 0) {
    const auto begun = by_peer_.find({path.remote, message.local_id});
    if (begun == by_peer_.end()) return Reception::kFitsNothing;
    id = begun->second;
  }
  Connection* const connection = match(id, message.local_id, path);
  if (connection == nullptr) return Reception::kFitsNothing;
  switch (connection->state) {
    case State::kRequestSent:
    case State::kRequestReceived:
    case State::kReplySent:
    case State::kReplyReceived:
    case State::kEstablished:  // the other end took it back, or never heard that it was
      tell(id, *connection, EventKind::kRejected, message);
      erase(id);
      return Reception::kTaken;
    case State::kDisconnectSent:
      tell_disconnected(id, *connection, message);
      enter_time_wait(*connection, now);
      return Reception::kTaken;
    case State::kDisconnectReceived:
    case State::kTimeWait:
    case State::kServiceAsked:
    case State::kServiceRequested:
    case State::kServiceAnswered:
      return Reception::kFitsNothing;
  }
  return Reception::kFitsNothing;
}

Reception Machine::on(const wire::ConnectReply& message, const Path& path, std::uint64_t transaction, Instant) {
  Connection* const connection = match(message.remote_id, message.local_id, path);
  if (connection == nullptr) {
    // Given up here: the other end need not go on asking.
    const wire::Rejection refusal{.local_id = message.remote_id,
                                  .remote_id = message.local_id,
                                  .message = wire::Answered::kReply,
                                  .reason = static_cast<std::uint16_t>(Reason::kInvalidCommunicationId)};
    transmissions_.push_back({path, wire::encode_connection_message(refusal, transaction)});
    return Reception::kFitsNothing;
  }
  if (connection->state != State::kRequestSent) {
    const bool again = connection->state == State::kReplyReceived || connection->state == State::kEstablished;
    if (!again || connection->counted) return Reception::kFitsNothing;
    if (connection->last != wire::Mad{}) put_out(*connection, connection->last);
    return Reception::kTaken;
  }
  connection->sending.stop();
  connection->state = State::kReplyReceived;
  connection->remote_id = message.local_id;
  connection->remote_qpn = message.local_qpn;
  tell(message.remote_id, *connection, EventKind::kReplied, message);
  return Reception::kTaken;
}

Reception Machine::on(const wire::ReadyToUse& message, const Path& path, std::uint64_t, Instant now) {
  Connection* const connection = match(message.remote_id, message.local_id, path);
  if (connection == nullptr) return Reception::kFitsNothing;
  if (connection->state == State::kEstablished) return Reception::kTaken;
  return established(message.remote_id, now) ? Reception::kTaken : Reception::kFitsNothing;
}

Reception Machine::on(const wire::DisconnectRequest& message, const Path& path, std::uint64_t transaction,
                      Instant now) {
  const ConnectionId id = message.remote_id;
  Connection* const connection = match(id, message.local_id, path);
  if (connection == nullptr) {
    // Forgotten here: the other end need not wait.
    const wire::DisconnectReply agreed{.local_id = message.remote_id, .remote_id = message.local_id};
    transmissions_.push_back({path, wire::encode_connection_message(agreed, transaction)});
    return Reception::kFitsNothing;
  }
  switch (connection->state) {
    case State::kReplySent:  // its ReadyToUse was lost
    case State::kEstablished:
      connection->sending.stop();
      connection->state = State::kDisconnectReceived;
      connection->transaction = transaction;
      tell_disconnected(id, *connection, message);
      if (connection->released) disconnect(id, now);
      return Reception::kTaken;
    case State::kDisconnectSent:  // both at once
      connection->transaction = transaction;
      connection->last = send(*connection, wire::DisconnectReply{.local_id = id, .remote_id = connection->remote_id});
      tell_disconnected(id, *connection, message);
      enter_time_wait(*connection, now);
      return Reception::kTaken;
    case State::kTimeWait:
      put_out(*connection, wire::encode_connection_message(
                               wire::DisconnectReply{.local_id = id, .remote_id = connection->remote_id}, transaction));
      return Reception::kTaken;
    case State::kDisconnectReceived:
      return Reception::kTaken;
    case State::kRequestSent:
    case State::kRequestReceived:
    case State::kReplyReceived:
    case State::kServiceAsked:
    case State::kServiceRequested:
    case State::kServiceAnswered:
      return Reception::kFitsNothing;
  }
  return Reception::kFitsNothing;
}

Reception Machine::on(const wire::DisconnectReply& message, const Path& path, std::uint64_t, Instant now) {
  Connection* const connection = match(message.remote_id, message.local_id, path);
  if (connection == nullptr || connection->state != State::kDisconnectSent) return Reception::kFitsNothing;
  tell_disconnected(message.remote_id, *connection, message);
  enter_time_wait(*connection, now);
  return Reception::kTaken;
}

Reception Machine::on(const wire::ServiceRequest& message, const Path& path, std::uint64_t transaction, Instant now) {
  const Peer peer{path.remote, message.request_id};
  if (answer_again(peer, now)) return Reception::kTaken;
  const ConnectionId id = has_room_for_others() ? make(path, State::kServiceRequested) : 0;
  if (id == 0) return Reception::kFull;
  Connection& connection = connections_[id];
  connection.remote_id = message.request_id;
  connection.transaction = transaction;
  connection.counted = true;
  by_peer_.emplace(peer, id);
  tell(id, connection, EventKind::kServiceRequested, message);
  return Reception::kTaken;
}

Reception Machine::on(const wire::ServiceReply& message, const Path& path, std::uint64_t, Instant) {
  Connection* const connection = match(message.request_id, 0, path);
  if (connection == nullptr || connection->state != State::kServiceAsked) return Reception::kFitsNothing;
  tell(message.request_id, *connection, EventKind::kServiceReplied, message);
  erase(message.request_id);
  return Reception::kTaken;
}

}  // namespace verbena::cm
