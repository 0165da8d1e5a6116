// Sends numbered datagrams to each of its peers and checks what it gets from them.
//
//     udmesh --id N [--port P] [--gid-index I] [--count N | --rate PER_SECOND] [--bytes B]
//
// Talks in lines. It prints `ready GID QPN`; it reads `peer ID GID QPN` for each peer and then `go`. With --count it
// sends that many datagrams to each peer, prints `sent`, and goes on receiving; without, it sends until told otherwise.
// Five times a second it prints `progress {...}`. On `stop`, or at the end of its input, it sends no more, receives
// what is still under way, prints `final {...}` and exits: 0, or 1 where a completion was bad.
//
// A datagram holds its sender, its number, its size and a pattern made from those, so that a receiver can tell a copy,
// a gap and a damaged byte.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "ud_endpoint.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Options {
  std::uint32_t id = 0;
  std::uint64_t count = 0;  // 0: until told to stop
  std::uint64_t rate = 500;
  e2e::EndpointOptions endpoint;
};

struct Header {
  std::uint32_t sender;
  std::uint32_t bytes;
  std::uint64_t number;
};

struct Peer {
  ibv_ah* handle = nullptr;
  std::uint32_t qpn = 0;
  std::uint64_t sent = 0;
};

// What came from one sender.
struct Heard {
  std::uint64_t datagrams = 0;
  std::uint64_t copies = 0;
  std::uint64_t late = 0;  // after one with a higher number
  std::uint64_t highest = 0;
  std::vector<std::uint8_t> times;  // how often each number came
};

std::uint8_t pattern(const Header& header, std::size_t at) {
  return static_cast<std::uint8_t>(header.sender * 131 + header.number * 17 + at * 7);
}

class Mesh {
 public:
  explicit Mesh(const Options& options) : options_(options), endpoint_(options.endpoint) {
    for (std::uint32_t i = 0; i < options.endpoint.sends; ++i) free_.push_back(i);
  }
  ~Mesh() {
    for (auto& [id, peer] : peers_) ibv_destroy_ah(peer.handle);
  }

  int run() {
    say("ready " + endpoint_.gid_text() + " " + std::to_string(endpoint_.qpn()));
    read_peers();
    next_send_ = next_report_ = Clock::now();
    bool said_sent = false;
    while (!told_to_stop()) {
      const bool busy = poll() | send_due();
      report_due();
      if (options_.count != 0 && !said_sent && everything_sent() && free_.size() == options_.endpoint.sends) {
        say("sent");
        said_sent = true;
      }
      if (!busy) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    drain();
    say("final " + report(true));
    return bad_completions_ == 0 ? 0 : 1;
  }

 private:
  static void say(const std::string& line) { std::cout << line << std::endl; }

  void read_peers() {
    for (std::string line; std::getline(std::cin, line) && line != "go";) {
      std::istringstream words(line);
      std::string word;
      std::string gid;
      std::uint32_t id = 0;
      Peer peer;
      words >> word >> id >> gid >> peer.qpn;
      if (!words || word != "peer") e2e::die("not a line for udmesh: " + line);
      peer.handle = endpoint_.make_address_handle(gid);
      peers_.emplace(id, peer);
    }
    next_ = peers_.begin();
  }

  bool told_to_stop() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, 0) <= 0) return false;
    std::string line;
    return !std::getline(std::cin, line) || line == "stop";
  }

  bool everything_sent() const {
    return std::all_of(peers_.begin(), peers_.end(), [this](auto& each) { return each.second.sent == options_.count; });
  }

  // One datagram to each peer in turn, at the given rate; never more at once than the send queue holds.
  bool send_due() {
    if (peers_.empty() || Clock::now() < next_send_) return false;
    bool any = false;
    for (std::size_t i = 0; i < peers_.size() && !free_.empty(); ++i) {
      auto& [id, peer] = *next_;
      if (++next_ == peers_.end()) next_ = peers_.begin();
      if (options_.count != 0 && peer.sent == options_.count) continue;
      send_one(peer);
      any = true;
    }
    next_send_ += std::chrono::nanoseconds(1'000'000'000 / options_.rate);
    return any;
  }

  void send_one(Peer& peer) {
    const std::uint32_t slot = free_.back();
    const auto bytes = options_.endpoint.message_bytes;
    const Header header{options_.id, static_cast<std::uint32_t>(bytes), peer.sent};
    std::uint8_t* out = endpoint_.send_slot(slot);
    std::memcpy(out, &header, sizeof header);
    for (std::size_t at = sizeof header; at < bytes; ++at) out[at] = pattern(header, at);
    errno = endpoint_.post_send(slot, bytes, peer.handle, peer.qpn);
    if (errno != 0) e2e::die("ibv_post_send");
    free_.pop_back();
    ++peer.sent;
  }

  bool poll() {
    ibv_wc completions[64];
    const int count = ibv_poll_cq(endpoint_.cq(), 64, completions);
    if (count < 0) e2e::die("ibv_poll_cq");
    for (int i = 0; i < count; ++i) take(completions[i]);
    return count > 0;
  }

  void take(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
      ++bad_completions_;
      std::fprintf(stderr, "completion: %s\n", ibv_wc_status_str(completion.status));
    }
    if ((completion.wr_id & e2e::UdEndpoint::kSendMark) != 0) {
      free_.push_back(static_cast<std::uint32_t>(completion.wr_id & ~e2e::UdEndpoint::kSendMark));
      return;
    }
    if (completion.status == IBV_WC_SUCCESS) hear(completion);
    endpoint_.post_receive(completion.wr_id);
  }

  void hear(const ibv_wc& completion) {
    const std::uint8_t* data = endpoint_.received(completion.wr_id);
    const std::size_t bytes = completion.byte_len - e2e::kGrhBytes;
    Header header{};
    if (bytes >= sizeof header) std::memcpy(&header, data, sizeof header);
    bool intact = bytes >= sizeof header && header.bytes == bytes && header.number < 100'000'000;
    for (std::size_t at = sizeof header; intact && at < bytes; ++at) intact = data[at] == pattern(header, at);
    if (!intact) {
      ++damaged_;
      return;
    }
    Heard& heard = heard_[header.sender];
    ++heard.datagrams;
    if (header.number >= heard.times.size()) heard.times.resize(header.number + 1);
    if (heard.times[header.number]++ != 0) ++heard.copies;
    if (header.number < heard.highest) ++heard.late;
    heard.highest = std::max(heard.highest, header.number);
  }

  void report_due() {
    if (Clock::now() < next_report_) return;
    next_report_ += milliseconds(200);
    say("progress " + report(false));
  }

  // Receives until nothing has come for 300 ms, five seconds at most.
  void drain() {
    const auto limit = Clock::now() + std::chrono::seconds(5);
    for (auto quiet = Clock::now() + milliseconds(300); Clock::now() < std::min(quiet, limit);) {
      if (poll()) quiet = Clock::now() + milliseconds(300);
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  std::string report(bool with_gaps) const {
    std::ostringstream out;
    out << "{\"id\":" << options_.id << ",\"bad_completions\":" << bad_completions_ << ",\"damaged\":" << damaged_
        << ",\"unfinished\":" << options_.endpoint.sends - free_.size() << ",\"sent\":{";
    const char* comma = "";
    for (const auto& [id, peer] : peers_) {
      out << comma << '"' << id << "\":" << peer.sent;
      comma = ",";
    }
    out << "},\"heard\":{";
    comma = "";
    for (const auto& [id, heard] : heard_) {
      out << comma << '"' << id << "\":{\"datagrams\":" << heard.datagrams << ",\"copies\":" << heard.copies
          << ",\"late\":" << heard.late;
      if (with_gaps) {
        out << ",\"most\":" << +*std::max_element(heard.times.begin(), heard.times.end())
            << ",\"missing\":" << missing(heard);
      }
      out << '}';
      comma = ",";
    }
    out << "}}";
    return out.str();
  }

  // The numbers that never came, of those that the sender must have used.
  std::string missing(const Heard& heard) const {
    std::ostringstream out;
    const char* comma = "";
    out << '[';
    const std::uint64_t end = std::max<std::uint64_t>(options_.count, heard.times.size());
    for (std::uint64_t number = 0; number < end; ++number) {
      if (number < heard.times.size() && heard.times[number] != 0) continue;
      out << comma << number;
      comma = ",";
    }
    out << ']';
    return out.str();
  }

  Options options_;
  e2e::UdEndpoint endpoint_;
  std::map<std::uint32_t, Peer> peers_;
  std::map<std::uint32_t, Peer>::iterator next_;
  std::map<std::uint32_t, Heard> heard_;
  std::vector<std::uint32_t> free_;
  Clock::time_point next_send_;
  Clock::time_point next_report_;
  std::uint64_t bad_completions_ = 0;
  std::uint64_t damaged_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--id") options.id = static_cast<std::uint32_t>(value);
    if (name == "--port") options.endpoint.port = static_cast<std::uint8_t>(value);
    if (name == "--gid-index") options.endpoint.gid_index = static_cast<int>(value);
    if (name == "--count") options.count = value;
    if (name == "--rate") options.rate = value;
    if (name == "--bytes") options.endpoint.message_bytes = value;
  }
  options.endpoint.message_bytes = std::max(options.endpoint.message_bytes, sizeof(Header));
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Mesh mesh(options);
  return mesh.run();
}
