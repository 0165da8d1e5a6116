#include "cli/ping_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "cli/clock.h"
#include "cli/figures.h"
#include "cli/ping_datagram.h"
#include "cli/ping_session.h"
#include "cli/stop_signal.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kControlInterval = 10ms;  // between two looks at the control channels while datagrams come
constexpr auto kAddressPatience = 200ms;     // for the address of a client's first reply
constexpr auto kLinePatience = 1s;
constexpr std::size_t kMaxReplies = 64;  // addresses of one client that are kept ready
constexpr int kRoomAttempts = 1000;
constexpr int kListenerRest_ms = 100;  // when it could not take in who waits

}  // namespace

PingServer::PingServer(UdEndpoint& endpoint, Announce announce) : endpoint_(endpoint), announce_(std::move(announce)) {}

void PingServer::add_client(ControlChannel channel) {
  const std::uint32_t number = next_client_++;
  Client client{.channel = std::move(channel)};
  client.name = client.channel.peer();
  const SessionHello hello = hello_of(endpoint_, client.channel.local_address(), number);
  if (client.channel.send_line(encode(hello), Deadline::in(kLinePatience))) {
    clients_.emplace(number, std::move(client));
  }
}

void PingServer::accept_clients() {
  if (!listener_) return;
  errno = 0;
  while (Descriptor socket = accept_from(listener_)) {
    add_client(ControlChannel(std::move(socket)));
    errno = 0;
  }
  // Who waits in the line of a listener without a descriptor for it would wake poll() for ever.
  listener_rests_ = errno != 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
}

void PingServer::serve_control() {
  accept_clients();
  for (auto client = clients_.begin(); client != clients_.end();) {
    client = serve_client(client->first, client->second) ? std::next(client) : clients_.erase(client);
  }
}

bool PingServer::serve_client(std::uint32_t number, Client& client) {
  std::string line;
  for (;;) {
    const auto taken = client.channel.take_line(line);
    if (!taken) {
      end_session(client, taken.error().code == ErrorCode::kUnavailable ? "" : taken.error().message);
      return false;
    }
    if (!*taken) return true;
    auto hello = decode_session_hello(line);
    if (!hello) {
      end_session(client, hello.error().message);
      return false;
    }
    begin_session(number, client, std::move(*hello));
  }
}

void PingServer::begin_session(std::uint32_t number, Client& client, SessionHello hello) {
  client.hello = std::move(hello);
  announce_(fmt::format("client {} ({}) on {}", number, client.name, client.hello.device));
  SessionHello ready{.qpns = endpoint_.qpns(), .qkey = endpoint_.qkey(), .client = number};
  // A client that is gone is noticed at the next look.
  static_cast<void>(client.channel.send_line(encode(ready), Deadline::in(kLinePatience)));
}

void PingServer::end_session(const Client& client, const std::string& why) {
  std::string line = fmt::format("client {} left: {} answered", client.name, format_count(client.answered));
  if (client.unanswered > 0) {
    line += fmt::format(", {} not ({})", format_count(client.unanswered), client.first_error);
  }
  if (!why.empty()) line += ": " + why;
  announce_(line);
}

ibv_ah* PingServer::address_of(Client& client, const Arrival& arrival) {
  const auto destination = endpoint_.directory().reply_to(arrival.completion, endpoint_.grh(arrival));
  if (!destination) {
    if (client.first_error.empty()) client.first_error = destination.error().message;
    return nullptr;
  }
  AhSender& sender = endpoint_.sender(arrival.queue_pair);
  if (ibv_ah* address = sender.next(*destination)) return address;
  auto handle = endpoint_.directory().acquire(*destination, Deadline::in(kAddressPatience));
  if (!handle) {
    if (client.first_error.empty()) client.first_error = handle.error().message;
    return nullptr;
  }
  if (client.replies.size() < kMaxReplies) client.replies.push_back(*handle);
  return sender.next(*handle);
}

bool PingServer::make_room(std::size_t queue_pair) {
  for (int attempt = 0; attempt < kRoomAttempts; ++attempt) {
    if (endpoint_.can_send(queue_pair)) return true;
    if (!endpoint_.poll_sends()) return false;
  }
  return false;
}

void PingServer::answer(Client& client, const Arrival& arrival, std::span<const std::byte> payload) {
  if (!make_room(arrival.queue_pair)) {
    if (client.first_error.empty()) client.first_error = "the send queue does not empty";
    ++client.unanswered;
    return;
  }
  ibv_ah* address = address_of(client, arrival);
  if (address == nullptr) {
    ++client.unanswered;
    return;
  }
  std::copy(payload.begin(), payload.end(), endpoint_.payload(arrival.queue_pair).begin());
  const UdPeer peer{address, arrival.completion.src_qp, client.hello.qkey};
  if (Status status = endpoint_.send(arrival.queue_pair, peer, payload.size()); !status) {
    if (client.first_error.empty()) client.first_error = status.error().message;
    ++client.unanswered;
    return;
  }
  ++client.answered;
  ++answered_;
}

void PingServer::answer(const Arrival& arrival) {
  const std::span<const std::byte> payload = endpoint_.received(arrival);
  const auto header = read_ping(payload);
  if (!header) return;
  const auto client = clients_.find(header->client);
  if (client == clients_.end()) return;
  // Only a queue pair that the client named: nobody else is sent anything.
  const auto& known = client->second.hello.qpns;
  if (std::find(known.begin(), known.end(), arrival.completion.src_qp) == known.end()) return;
  answer(client->second, arrival, payload);
}

Status PingServer::serve_datagrams(std::span<const Arrival> arrivals) {
  for (const Arrival& arrival : arrivals) {
    answer(arrival);
    if (Status status = endpoint_.repost(arrival); !status) return status;
  }
  return endpoint_.poll_sends();
}

// Arms, looks once more, and sleeps: a datagram between the last look and the arming raises no event.
Status PingServer::sleep() {
  if (Status status = endpoint_.arm(); !status) return status;
  const auto arrivals = endpoint_.poll_receives();
  if (!arrivals) return tl::make_unexpected(arrivals.error());
  if (!arrivals->empty()) return serve_datagrams(*arrivals);
  std::vector<pollfd> waiting{{endpoint_.event_fd(), POLLIN, 0}};
  if (listener_ && !listener_rests_) waiting.push_back({listener_.get(), POLLIN, 0});
  for (const auto& [number, client] : clients_) waiting.push_back({client.channel.fd(), POLLIN, 0});
  // A signal between the last look at stop_requested() and here must not be slept over for long.
  ::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), listener_rests_ ? kListenerRest_ms : 1000);
  return (waiting.front().revents & POLLIN) != 0 ? endpoint_.take_event() : Status();
}

Status PingServer::run(bool once) {
  Instant last_datagram = now();
  Instant awake_since = last_datagram;  // or since the last datagram
  Instant last_control;
  bool had_client = !clients_.empty();
  while (!stop_requested()) {
    const auto arrivals = endpoint_.poll_receives();
    if (!arrivals) return tl::make_unexpected(arrivals.error());
    const Instant time = now();
    if (!arrivals->empty()) {
      spin_.on_wait(time - last_datagram);
      last_datagram = awake_since = time;
      if (Status status = serve_datagrams(*arrivals); !status) return status;
    }
    const bool idle = time - awake_since > spin_.limit();
    if (idle || time - last_control > kControlInterval) {
      last_control = time;
      serve_control();
      had_client = had_client || !clients_.empty();
      if (once && had_client && clients_.empty()) return {};
    }
    if (!idle) continue;
    if (Status status = sleep(); !status) return status;
    awake_since = now();
  }
  return {};
}

}  // namespace verbena::cli
