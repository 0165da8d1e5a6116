// Datagrams through a directory that nobody looks after: what the tests of faults stand on.
//
//     directory_traffic [MICROSECONDS between two rounds, 2000 by default [DEVICE, the first usable one by default]]
//
// Says "ready QPN", then reads commands, a line each, and answers:
//     peer ADDRESS QPN [FLOW]   one more destination, which each round sends one datagram; "peer INDEX"
//     after NANOSECONDS COUNT   "arrived NANOSECONDS" as soon as datagrams of COUNT destinations have arrived that were
//                               sent at or after that time of the monotonic clock
//     sources                   "sources {GID: when its last datagram was sent}", of what arrived
//     stats                     "stats {...}": the directory's counts and this program's own
//     events                    "events {KIND: {CAUSE: how many}}": what its subscriber was told so far
//     quit                      closes everything; "final {...}" with what was left
// A destination is asked for until there is a handle of it. From then on nothing is done about it but next(). A queue
// pair that a failed send has left in error is replaced, as any application must.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "directory/lane.h"

namespace verbena::e2e {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using on_device::Lane;

struct Payload {
  std::int64_t sent_ns = 0;
  std::uint32_t destination = 0;
  std::uint32_t zero = 0;
};

struct Peer {
  Destination to;
  std::uint32_t qpn = 0;
  AhHandle handle;
  AhTicket asked;
  bool asking = false;
};

struct Waited {
  std::int64_t since_ns = 0;
  std::size_t count = 0;
  std::set<std::uint32_t> heard;
};

std::int64_t now_ns() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& what, const Error& error) {
  std::fprintf(stderr, "directory_traffic: %s: %s\n", what.c_str(), error.message.c_str());
  std::exit(1);
}
void must(const Status& status, const char* what) {
  if (!status) give_up(what, status.error());
}
template <class T>
T must(Result<T> made, const char* what) {
  if (!made) give_up(what, made.error());
  return std::move(*made);
}

// What the directory told a subscriber, counted.
class Told {
 public:
  void operator()(const AhEvent& event) {
    const std::lock_guard lock(mutex_);
    counts_[to_string(event.kind)][to_string(event.cause)] += 1;
  }
  Json counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::uint64_t>> counts_;  // guarded by mutex_
};

class Traffic {
 public:
  explicit Traffic(const std::string& device)
      : context_(must(device.empty() ? Context::open_first_usable() : Context::open(device), "device")),
        domain_(must(ProtectionDomain::create(context_), "domain")),
        directory_(must(AhDirectory::create(domain_, 1), "directory")),
        lane_(must(Lane::open(context_, domain_, directory_), "queue pair")) {
    must(directory_.subscribe([this](const AhEvent& event) { told_(event); }), "subscription");
  }

  std::uint32_t qpn() const { return lane_->qpn(); }
  void round();
  // False at the end.
  bool obey(const std::string& line);

 private:
  void ask(Peer& peer);
  void mend();
  void arrived(std::span<const std::byte> payload, std::span<const std::byte, 40> grh, const ibv_wc& completion);
  Json stats() const;
  Json close();

  Told told_;  // outlives the directory, which calls it
  Context context_;
  ProtectionDomain domain_;
  AhDirectory directory_;
  std::unique_ptr<Lane> lane_;
  std::vector<Peer> peers_;
  std::optional<Waited> waited_;
  std::map<std::string, std::int64_t> sources_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t unready_ = 0;
  std::uint64_t failed_ = 0;   // sends, of earlier queue pairs
  std::uint64_t mended_ = 0;   // queue pairs
  std::uint64_t refused_ = 0;  // askings that ended in an error
};

void Traffic::ask(Peer& peer) {
  if (peer.asking && !peer.asked.ready()) return;
  if (peer.asking) {
    if (auto handle = peer.asked.wait(Deadline::in(0s)); handle) {
      peer.handle = std::move(*handle);
    } else {
      ++refused_;
    }
    peer.asking = false;
    peer.asked = {};
    if (peer.handle) return;
  }
  peer.asked = directory_.acquire_async(peer.to);
  peer.asking = true;
}

void Traffic::mend() {
  failed_ += lane_->failed();
  ++mended_;
  lane_.reset();
  lane_ = must(Lane::open(context_, domain_, directory_), "another queue pair");
}

void Traffic::round() {
  for (std::size_t index = 0; index < peers_.size(); ++index) {
    Peer& peer = peers_[index];
    if (!peer.handle) ask(peer);
    if (!peer.handle || !lane_->has_room()) continue;
    ibv_ah* address = lane_->sender().next(peer.handle);
    if (address == nullptr) {
      ++unready_;
      continue;
    }
    const Payload payload{now_ns(), static_cast<std::uint32_t>(index), 0};
    must(lane_->send(address, peer.qpn, std::as_bytes(std::span(&payload, 1))), "send");
    ++sent_;
  }
  must(lane_->poll_sends(), "completions of sends");
  const Status received =
      lane_->receive([this](auto payload, auto grh, const ibv_wc& wc) { arrived(payload, grh, wc); });
  if (!received || lane_->failed() != 0) mend();
}

void Traffic::arrived(std::span<const std::byte> payload, std::span<const std::byte, 40> grh,
                      const ibv_wc& completion) {
  Payload text;
  if (payload.size() != sizeof text) return;
  std::memcpy(&text, payload.data(), sizeof text);
  ++received_;
  if (const auto from = directory_.reply_to(completion, grh); from) sources_[to_string(from->gid)] = text.sent_ns;
  if (!waited_ || text.sent_ns < waited_->since_ns) return;
  waited_->heard.insert(text.destination);
  if (waited_->heard.size() < waited_->count) return;
  std::cout << "arrived " << now_ns() << std::endl;
  waited_.reset();
}

Json Traffic::stats() const {
  Json answer{{"sent", sent_}, {"received", received_}, {"unready", unready_}, {"asked_in_vain", refused_}};
  answer["failed_sends"] = failed_ + lane_->failed();
  answer["queue_pairs_replaced"] = mended_;
  const AhStats stats = directory_.stats();
  for (const AhStatRow& row : ah_stat_rows()) answer["directory"][row.name] = stats.*row.value;
  return answer;
}

Json Traffic::close() {
  Json answer = stats();
  must(lane_->settle(Deadline::in(5s)), "completions at the end");
  peers_.clear();
  lane_.reset();
  const AhLeftover left = directory_.close(Deadline::in(5s));
  answer["left"] = {{"address_handles", left.rows.size()}, {"handles", left.handles}};
  directory_ = {};
  must(domain_.close(), "domain");
  must(context_.close(), "device");
  return answer;
}

bool Traffic::obey(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "peer") {
    Peer peer;
    std::string address;
    words >> address >> peer.qpn >> peer.to.flow_label;
    const auto gid = parse_gid(address);
    if (!gid) give_up(line, {ErrorCode::kInvalidArgument, 0, "no address"});
    peer.to.gid = *gid;
    peers_.push_back(std::move(peer));
    std::cout << "peer " << peers_.size() - 1 << std::endl;
  } else if (verb == "after") {
    Waited waited;
    words >> waited.since_ns >> waited.count;
    waited_ = std::move(waited);
  } else if (verb == "sources") {
    std::cout << "sources " << Json(sources_) << std::endl;
  } else if (verb == "events") {
    std::cout << "events " << told_.counts() << std::endl;
  } else if (verb == "stats") {
    std::cout << "stats " << stats() << std::endl;
  } else {
    std::cout << "final " << close() << std::endl;
    return false;
  }
  return true;
}

// Whole lines of standard input, without waiting.
class Lines {
 public:
  std::vector<std::string> take() {
    std::vector<std::string> lines;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    while (!ended_ && ::poll(&input, 1, 0) > 0) {
      std::array<char, 4096> bytes{};
      const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      ended_ = got <= 0;
      if (got > 0) kept_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    for (std::size_t end = kept_.find('\n'); end != std::string::npos; end = kept_.find('\n')) {
      lines.push_back(kept_.substr(0, end));
      kept_.erase(0, end + 1);
    }
    if (ended_) lines.emplace_back("quit");
    return lines;
  }

 private:
  std::string kept_;
  bool ended_ = false;
};

void run(std::chrono::microseconds pause, const std::string& device) {
  Traffic traffic(device);
  Lines lines;
  std::cout << "ready " << traffic.qpn() << std::endl;
  for (;;) {
    for (const std::string& line : lines.take()) {
      if (!traffic.obey(line)) return;
    }
    traffic.round();
    ::usleep(static_cast<useconds_t>(pause.count()));
  }
}

}  // namespace
}  // namespace verbena::e2e

int main(int argc, char** argv) {
  verbena::e2e::run(std::chrono::microseconds(argc > 1 ? std::atoi(argv[1]) : 2000), argc > 2 ? argv[2] : "");
  return 0;
}
