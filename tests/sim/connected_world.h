// Stations with connections between them, traffic in both directions of each, and what must hold at every packet.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sim/datagram_stream.h"
#include "sim/network.h"
#include "sim/station.h"
#include "sim/stream.h"

namespace verbena::sim {

struct WorldPlan {
  Impairment impairment;
  std::vector<Agreement> connections;
  std::uint32_t longest = 16'384;       // message
  std::uint32_t receives = 12;          // of each end
  std::uint32_t station_receives = 32;  // where they are shared
  bool shared_receives = false;
  bool late_receives = false;   // they run out now and then
  bool full_transport = false;  // the transport has often no room
  bool datagrams = false;       // go beside the connections, in both directions
};

struct WorldOutcome {
  std::vector<StreamCounts> streams;
  std::vector<DatagramCounts> datagrams;
  std::uint64_t packets = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t rnr_naks = 0;
  std::uint64_t sequence_naks = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t damaged = 0;
  std::uint64_t cnps = 0;
  std::uint64_t sent_again = 0;  // packets
  std::uint64_t kept_early = 0;
  std::uint64_t selective_acks = 0;
  std::uint64_t digest = 0;

  friend bool operator==(const WorldOutcome&, const WorldOutcome&) = default;
};

// What the packets of one direction of a connection must keep to.
class WireWatch {
 public:
  explicit WireWatch(const Agreement& agreement) : agreement_(agreement) {}
  void on_request(const wire::Packet& packet);
  void on_response(const wire::Packet& packet);

 private:
  const Agreement agreement_;
  bool begun_ = false;
  Psn highest_;   // one past the highest sent
  Psn answered_;  // one past the highest that was answered
  std::uint32_t msn_ = 0;
  std::uint64_t messages_ = 0;  // sent to their ends; a read in pieces is as many
};

class ConnectedWorld {
 public:
  ConnectedWorld(std::uint64_t seed, const WorldPlan& plan);

  // Posts until `packets` have been sent or `requests` posted, whichever comes first, then waits until all is done.
  WorldOutcome run(std::uint64_t packets, std::uint64_t requests);
  // From now on the network is as `impairment` says.
  void change(const Impairment& impairment) { network_.change(impairment); }

 private:
  struct Receive {
    std::vector<std::span<std::byte>> pieces;
    std::span<std::byte> buffer;
    bool posted = false;
  };
  // The receives of one connection's end, or those that a station shares.
  struct Receives {
    Station* station = nullptr;
    std::size_t connection = 0;
    bool shared = false;
    std::vector<Receive> all;
  };

  void add_datagrams();
  void add_receives(Station& station, std::size_t connection, bool shared, std::uint32_t count);
  void post_receives(Receives& receives, bool all);
  void step(bool posting);
  void post();
  void take_completions(std::size_t station);
  void advance(bool posting);
  bool at_rest() const;
  std::string in_words() const;
  Stream& stream_from(std::size_t station, std::size_t connection) { return *streams_[2 * connection + station]; }
  WireWatch& watch_from(std::size_t station, std::size_t connection) { return watches_[2 * connection + station]; }

  const WorldPlan plan_;
  std::mt19937_64 random_;
  Network network_;
  std::vector<std::unique_ptr<Station>> stations_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<DatagramStream>> datagrams_;  // none, or one from each station
  std::vector<WireWatch> watches_;
  std::vector<Receives> receives_;
  bool starved_ = false;  // no receives are posted just now
  Instant now_{1'000'000};
  std::uint64_t completions_digest_ = 1;
};

}  // namespace verbena::sim
