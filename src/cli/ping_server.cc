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

PingServer::PingServer(ServedPorts ports, Announce announce)
    : ports_(std::move(ports)), announce_(std::move(announce)) {}

UdEndpoint& PingServer::endpoint_at(const LocalAddress& address) {
  const std::size_t before = ports_.all().size();
  UdEndpoint& endpoint = ports_.at(address);
  if (ports_.all().size() > before) announce_("answers on " + in_words(endpoint) + " too");
  return endpoint;
}

void PingServer::find_busy_endpoints() {
  busy_.clear();
  for (const auto& endpoint : ports_.all()) {
    const bool has_client = std::any_of(clients_.begin(), clients_.end(), [&](const auto& numbered) {
      return numbered.second.endpoint == endpoint.get();
    });
    if (has_client) busy_.push_back(endpoint.get());
  }
}

void PingServer::add_client(ControlChannel channel) {
  const std::uint32_t number = next_client_++;
  Client client{.channel = std::move(channel)};
  client.name = client.channel.peer();
  const LocalAddress address = client.channel.local_address();
  client.endpoint = &endpoint_at(address);
  const SessionHello hello = hello_of(*client.endpoint, address.gid, number);
  if (client.channel.send_line(encode(hello), Deadline::in(kLinePatience))) {
    clients_.emplace(number, std::move(client));
    find_busy_endpoints();
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
    if (serve_client(client->first, client->second)) {
      ++client;
    } else {
      client = clients_.erase(client);
      find_busy_endpoints();
    }
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
  SessionHello ready{.qpns = client.endpoint->qpns(), .qkey = client.endpoint->qkey(), .client = number};
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
  UdEndpoint& endpoint = *client.endpoint;
  const auto destination = endpoint.directory().reply_to(arrival.completion, endpoint.grh(arrival));
  if (!destination) {
    if (client.first_error.empty()) client.first_error = destination.error().message;
    return nullptr;
  }
  AhSender& sender = endpoint.sender(arrival.queue_pair);
  if (ibv_ah* address = sender.next(*destination)) return address;
  auto handle = endpoint.directory().acquire(*destination, Deadline::in(kAddressPatience));
  if (!handle) {
    if (client.first_error.empty()) client.first_error = handle.error().message;
    return nullptr;
  }
  if (client.replies.size() < kMaxReplies) client.replies.push_back(*handle);
  return sender.next(*handle);
}

bool PingServer::make_room(UdEndpoint& endpoint, std::size_t queue_pair) {
  for (int attempt = 0; attempt < kRoomAttempts; ++attempt) {
    if (endpoint.can_send(queue_pair)) return true;
    if (!endpoint.poll_sends()) return false;
  }
  return false;
}

void PingServer::answer(Client& client, const Arrival& arrival, std::span<const std::byte> payload) {
  UdEndpoint& endpoint = *client.endpoint;
  if (!make_room(endpoint, arrival.queue_pair)) {
    if (client.first_error.empty()) client.first_error = "the send queue does not empty";
    ++client.unanswered;
    return;
  }
  ibv_ah* address = address_of(client, arrival);
  if (address == nullptr) {
    ++client.unanswered;
    return;
  }
  std::copy(payload.begin(), payload.end(), endpoint.payload(arrival.queue_pair).begin());
  const UdPeer peer{address, arrival.completion.src_qp, client.hello.qkey};
  if (Status status = endpoint.send(arrival.queue_pair, peer, payload.size()); !status) {
    if (client.first_error.empty()) client.first_error = status.error().message;
    ++client.unanswered;
    return;
  }
  ++client.answered;
  ++answered_;
}

void PingServer::answer(UdEndpoint& endpoint, const Arrival& arrival) {
  const std::span<const std::byte> payload = endpoint.received(arrival);
  const auto header = read_ping(payload);
  if (!header) return;
  const auto client = clients_.find(header->client);
  if (client == clients_.end() || client->second.endpoint != &endpoint) return;
  // Only a queue pair that the client named: nobody else is sent anything.
  const auto& known = client->second.hello.qpns;
  if (std::find(known.begin(), known.end(), arrival.completion.src_qp) == known.end()) return;
  answer(client->second, arrival, payload);
}

Result<std::size_t> PingServer::serve_datagrams() {
  std::size_t served = 0;
  for (UdEndpoint* endpoint : busy_) {
    const auto arrivals = endpoint->poll_receives();
    if (!arrivals) return tl::make_unexpected(arrivals.error());
    if (arrivals->empty()) continue;
    for (const Arrival& arrival : *arrivals) {
      answer(*endpoint, arrival);
      if (Status status = endpoint->repost(arrival); !status) return tl::make_unexpected(status.error());
    }
    if (Status status = endpoint->poll_sends(); !status) return tl::make_unexpected(status.error());
    served += arrivals->size();
  }
  return served;
}

// Arms, looks once more, and sleeps: a datagram between the last look and the arming raises no event.
Status PingServer::sleep() {
  std::vector<pollfd> waiting;
  for (UdEndpoint* endpoint : busy_) {
    if (Status status = endpoint->arm(); !status) return status;
    waiting.push_back({endpoint->event_fd(), POLLIN, 0});
  }
  const auto served = serve_datagrams();
  if (!served) return tl::make_unexpected(served.error());
  if (*served > 0) return {};
  if (listener_ && !listener_rests_) waiting.push_back({listener_.get(), POLLIN, 0});
  for (const auto& [number, client] : clients_) waiting.push_back({client.channel.fd(), POLLIN, 0});
  // A signal between the last look at stop_requested() and here must not be slept over for long.
  ::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), listener_rests_ ? kListenerRest_ms : 1000);
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    if ((waiting[i].revents & POLLIN) == 0) continue;
    if (Status status = busy_[i]->take_event(); !status) return status;
  }
  return {};
}

Status PingServer::run(bool once) {
  Instant last_datagram = now();
  Instant awake_since = last_datagram;  // or since the last datagram
  Instant last_control;
  bool had_client = !clients_.empty();
  while (!stop_requested()) {
    const Instant time = now();
    const auto served = serve_datagrams();
    if (!served) return tl::make_unexpected(served.error());
    if (*served > 0) {
      spin_.on_wait(time - last_datagram);
      last_datagram = awake_since = time;
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
