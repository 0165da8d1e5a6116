// The middleware on a device, a command at a time: what a test in the virtual machine speaks to.
//
//     directory_session DEVICE
//
// Reads a command a line, answers each with one line of JSON: "ok", "ms" (how long it took), and what it is about;
// where it failed, "code" and "message". ADDRESS is as parse_gid() reads it.
//     acquire ADDRESS MS | drop ADDRESS | send ADDRESS QPN TEXT | receive MS | reply TEXT | effective ADDRESS
//     storm ADDRESS THREADS DESTINATIONS | stats | qpn | close
//     introduce ADDRESS QPN INCARNATION | standing ADDRESS QPN INCARNATION
// The last two are about its table of peers. A storm: so many threads, each of which asks for so many destinations
// (flow labels of ADDRESS), all at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "endpoint.h"
#include "verbena/peer.h"

namespace verbena::vm {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

Json error_json(const Error& error) {
  static const std::map<ErrorCode, const char*> kNames = {{ErrorCode::kInvalidArgument, "invalid_argument"},
                                                          {ErrorCode::kNotFound, "not_found"},
                                                          {ErrorCode::kUnreachable, "unreachable"},
                                                          {ErrorCode::kTimedOut, "timed_out"},
                                                          {ErrorCode::kExhausted, "exhausted"},
                                                          {ErrorCode::kBusy, "busy"},
                                                          {ErrorCode::kPermission, "permission"},
                                                          {ErrorCode::kUnsupported, "unsupported"},
                                                          {ErrorCode::kUnavailable, "unavailable"},
                                                          {ErrorCode::kInternal, "internal"}};
  return {{"ok", false}, {"code", kNames.at(error.code)}, {"errno", error.system_errno}, {"message", error.message}};
}

Json effective_json(const EffectiveAddress& address) {
  const ibv_ah_attr& attributes = address.attributes;
  Gid destination;
  std::copy_n(attributes.grh.dgid.raw, destination.bytes.size(), destination.bytes.begin());
  return {{"ok", true},
          {"destination", to_string(destination)},
          {"source", to_string(address.source.gid)},
          {"type", to_string(address.source.type)},
          {"index", address.source.index},
          {"sgid_index", attributes.grh.sgid_index},
          {"hop_limit", attributes.grh.hop_limit},
          {"is_global", attributes.is_global},
          {"port", attributes.port_num},
          {"generation", address.generation},
          {"explanation", address.explanation}};
}

class Session {
 public:
  explicit Session(Endpoint end) : end_(std::move(end)) {}

  Json obey(const std::string& line);
  bool closed() const noexcept { return closed_; }

 private:
  Json act(const std::string& verb, std::istringstream& words);
  Json about_destination(const std::string& verb, const Destination& to, std::istringstream& words);
  Json storm(const Destination& to, unsigned threads, std::uint32_t destinations);
  Json introduce(const AhPeer& peer);
  Json standing(const AhPeer& peer) const;
  Json send(const Destination& to, std::uint32_t qpn, const std::string& text);
  Json receive(std::chrono::milliseconds patience);
  Json reply(const std::string& text);
  Json stats();
  Json close();

  Endpoint end_;
  PeerTable peers_{{.quarantine = 10min}};
  Received last_;
  bool closed_ = false;
};

Json Session::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  const auto begin = std::chrono::steady_clock::now();
  Json answer = act(verb, words);
  answer["ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}

Json Session::act(const std::string& verb, std::istringstream& words) {
  if (verb == "qpn") return {{"ok", true}, {"qpn", end_.qpn()}};
  if (verb == "stats") return stats();
  if (verb == "close") return close();
  std::string word;
  words >> word;
  if (verb == "receive") return receive(std::chrono::milliseconds(std::stoi(word)));
  if (verb == "reply") return reply(word);
  const std::optional<Gid> gid = parse_gid(word);
  if (!gid) return error_json({ErrorCode::kInvalidArgument, 0, "no address: '" + word + "'"});
  Destination to;
  to.gid = *gid;
  return about_destination(verb, to, words);
}

Json Session::about_destination(const std::string& verb, const Destination& to, std::istringstream& words) {
  if (verb == "drop") return {{"ok", end_.drop(to)}};
  if (verb == "send") {
    std::uint32_t qpn = 0;
    std::string text;
    words >> qpn >> text;
    return send(to, qpn, text);
  }
  if (verb == "introduce" || verb == "standing") {
    AhPeer peer{to, 0, 0};
    words >> peer.qpn >> peer.incarnation;
    return verb == "introduce" ? introduce(peer) : standing(peer);
  }
  if (verb == "storm") {
    unsigned threads = 0;
    std::uint32_t destinations = 0;
    words >> threads >> destinations;
    return storm(to, threads, destinations);
  }
  int patience = 0;
  if (verb == "acquire") words >> patience;
  const AhHandle ready = verb == "effective" ? end_.directory().find(to) : AhHandle();
  const auto handle = ready ? Result<AhHandle>(ready) : end_.acquire(to, std::chrono::milliseconds(patience));
  if (!handle) return error_json(handle.error());
  const auto effective = end_.directory().effective(*handle);
  return effective ? effective_json(*effective) : error_json(effective.error());
}

Json Session::storm(const Destination& to, unsigned threads, std::uint32_t destinations) {
  std::atomic<std::uint64_t> refused = 0;
  std::vector<std::thread> askers;
  for (unsigned asker = 0; asker < threads; ++asker) {
    askers.emplace_back([&, asker] {
      for (std::uint32_t i = 0; i < destinations; ++i) {
        Destination wanted = to;
        wanted.flow_label = 1 + (i + asker) % destinations;  // each begins elsewhere
        if (!end_.directory().acquire(wanted, Deadline::in(60s))) ++refused;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  return {{"ok", true}, {"refused", refused.load()}};
}

Json Session::introduce(const AhPeer& peer) {
  const auto id = peers_.introduce(peer, std::chrono::steady_clock::now());
  if (!id) return error_json(id.error());
  return {{"ok", true}, {"id", id->value}, {"peers", peers_.size()}, {"quarantined", peers_.quarantined()}};
}

Json Session::standing(const AhPeer& peer) const {
  static const std::map<PeerStanding, const char*> kNames = {{PeerStanding::kUnknown, "unknown"},
                                                             {PeerStanding::kCurrent, "current"},
                                                             {PeerStanding::kNewer, "newer"},
                                                             {PeerStanding::kQuarantined, "quarantined"}};
  return {{"ok", true}, {"standing", kNames.at(peers_.standing(peer))}};
}

Json Session::send(const Destination& to, std::uint32_t qpn, const std::string& text) {
  const Status sent = end_.send(to, qpn, text);
  return sent ? Json{{"ok", true}} : error_json(sent.error());
}

Json Session::receive(std::chrono::milliseconds patience) {
  auto datagram = end_.receive(patience);
  if (!datagram) return error_json(datagram.error());
  last_ = std::move(*datagram);
  return {{"ok", true},
          {"text", last_.text},
          {"qpn", last_.qpn},
          {"from", to_string(last_.reply.gid)},
          {"to", to_string(last_.reply.source)}};
}

// To whoever sent what was received last.
Json Session::reply(const std::string& text) {
  const auto handle = end_.directory().acquire(last_.reply, Deadline::in(5s));
  if (!handle) return error_json(handle.error());
  return send(last_.reply, last_.qpn, text);
}

Json Session::stats() {
  Json answer{{"ok", true}};
  const AhStats stats = end_.directory().stats();
  for (const AhStatRow& row : ah_stat_rows()) answer[row.name] = stats.*row.value;
  return answer;
}

Json Session::close() {
  closed_ = true;
  const auto left = end_.close(2s);
  if (!left) return error_json(left.error());
  return {{"ok", true}, {"left", left->rows.size()}, {"handles", left->handles}};
}

int run(const char* device) {
  auto end = Endpoint::open(device);
  if (!end) {
    std::cerr << "directory_session: " << end.error().message << "\n";
    return 1;
  }
  Session session(std::move(*end));
  std::string line;
  while (!session.closed() && std::getline(std::cin, line)) std::cout << session.obey(line) << std::endl;
  return 0;
}

}  // namespace
}  // namespace verbena::vm

int main(int argc, char** argv) {
  if (argc == 2) return verbena::vm::run(argv[1]);
  std::fputs("usage: directory_session DEVICE\n", stderr);
  return 2;
}
