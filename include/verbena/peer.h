// Who an application talks to, and whether it is still the same one.
//
// A queue pair number says little: a process that restarts may get the one that its predecessor had, and what the two
// sides knew of each other (sequence numbers, credits, keys) is then wrong in a way that shows late. So a peer is
// (destination, queue pair number, incarnation). The incarnation is a number that a process chooses anew at each start,
// such as its start time, and tells with its address; a greater one replaces a smaller one.
//
// What belonged to a peer that was replaced or let go is quarantined: it is reported as old for a while and not taken
// up again, so that a late datagram of the old one is recognized as such.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "verbena/destination.h"
#include "verbena/export.h"
#include "verbena/result.h"

namespace verbena {

struct AhPeer {
  // Two are of one peer where GID and port are the same, or LID and port where there is no GID; port 0 is
  // PeerTableOptions::port. Source, traffic class,
  // flow label and the like say how it is reached: what AhDirectory::reply_to() makes of a datagram is of its sender,
  // whatever the application sends to it with.
  Destination destination;
  std::uint32_t qpn = 0;  // 24 bits
  std::uint64_t incarnation = 0;

  friend bool operator==(const AhPeer&, const AhPeer&) = default;
};

// A place in a table; never given twice by one table, also not to a peer that comes back.
struct PeerId {
  std::uint64_t value = 0;  // 0: none
  friend auto operator<=>(const PeerId&, const PeerId&) = default;
};

// What a table says of a datagram's sender or of a peer to be added.
enum class PeerStanding : std::uint8_t {
  kUnknown,      // never heard of, or long forgotten
  kCurrent,      // the one that is known
  kNewer,        // of a later incarnation than the one that is known: introduce it
  kQuarantined,  // replaced or let go a short while ago: drop what it says
};

// Times of more than a year are taken as a year, and negative ones as 0.
struct PeerTableOptions {
  std::chrono::nanoseconds quarantine = std::chrono::seconds(30);
  std::chrono::nanoseconds probe_after{0};  // unheard of for so long: a probe is due; 0: no probes
  std::chrono::nanoseconds probe_interval = std::chrono::seconds(1);  // to the next, while none is answered
  std::uint32_t probes_until_dead = 3;                                // unanswered in a row
  std::size_t max_peers = 65536;  // current ones; quarantined beyond as many are released at once
  std::uint8_t port = 1;          // of the directory: a destination that leaves its port 0 is of this one
};

// What a table wants done outside.
struct PeerAction {
  enum class Kind : std::uint8_t {
    kProbe,     // send something that it must answer; missed tells how many were not answered so far
    kDead,      // it answered none of its probes: quarantined
    kReleased,  // its quarantine is over: what is kept for this id may be dropped
  };
  Kind kind = Kind::kProbe;
  PeerId id;
  AhPeer peer;
  std::uint32_t missed = 0;
};

// A pure machine: it reads no clock and sends nothing.
//
// Thread-safety: none; one owner.
// Ownership:     keeps values only.
// Errors:        kExhausted from introduce() where max_peers are known; kInvalidArgument for a peer that cannot be;
//                kUnavailable for one in quarantine.
class VERBENA_API PeerTable {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  explicit PeerTable(const PeerTableOptions& options = {});

  // Getters.
  PeerStanding standing(const AhPeer& peer) const;
  // The peer that is current there, whatever its incarnation; none where there is none.
  PeerId find(const Destination& destination, std::uint32_t qpn) const;
  const AhPeer* peer(PeerId id) const;  // current or quarantined; nullptr: unknown
  bool is_current(PeerId id) const;
  std::size_t size() const noexcept { return current_.size(); }
  std::size_t quarantined() const noexcept { return known_.size() - current_.size(); }

  // The current one where it is there already. One of a later incarnation replaces an earlier one, which goes into
  // quarantine; one of an earlier incarnation is refused.
  Result<PeerId> introduce(const AhPeer& peer, Instant now);
  // Into quarantine. Ignored where it is not current.
  void let_go(PeerId id, Instant now);

  // Something came from it: it lives.
  void on_heard(PeerId id, Instant now);

  // What is to be done now, one at a time; drain it after each call above and at next_timeout().
  std::optional<PeerAction> poll_action(Instant now);
  std::optional<Instant> next_timeout() const;

 private:
  // What identifies a peer's queue pair, and nothing of how it is reached.
  struct Place {
    Gid gid;
    std::uint16_t lid = 0;  // where there is no GID
    std::uint8_t port = 0;
    std::uint32_t qpn = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept;
  };
  struct Record {
    AhPeer peer;
    bool current = true;
    std::uint32_t missed = 0;
    Instant due;         // of the next probe, or the end of the quarantine
    std::size_t at = 0;  // in heap_
  };

  Place place_of(const Destination& destination, std::uint32_t qpn) const;
  Place place_of(const AhPeer& peer) const { return place_of(peer.destination, peer.qpn); }
  void quarantine(std::uint64_t id, Instant now);
  void schedule(std::uint64_t id, Instant due);
  void unschedule(std::uint64_t id);
  void sift(std::size_t at);
  bool is_earlier(std::size_t a, std::size_t b) const;

  PeerTableOptions options_;
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, Record> known_;  // current and quarantined
  std::unordered_map<Place, std::uint64_t, PlaceHash> current_;
  std::unordered_multimap<Place, std::uint64_t, PlaceHash> old_;  // quarantined
  std::vector<std::uint64_t> heap_;                               // ids with a due time, earliest first
};

}  // namespace verbena
