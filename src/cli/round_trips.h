// The book of a ping run: what was sent, what came back and when, what is given up. Pure: time is an argument.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "base/instant.h"
#include "cli/latency_distribution.h"

namespace verbena::cli {

struct PingCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;   // answered in time, each counted once
  std::uint64_t late = 0;       // answered after they were given up
  std::uint64_t duplicate = 0;  // further answers to the same one
  std::uint64_t corrupt = 0;    // answers whose bytes are not those sent
  std::uint64_t unknown = 0;    // answers to what was never sent
  std::uint64_t unsent = 0;     // not sent, for there was no address handle; not part of `sent`

  friend bool operator==(const PingCounts&, const PingCounts&) = default;
};

class RoundTrips {
 public:
  // One that is not answered within `timeout` is given up.
  explicit RoundTrips(Duration timeout) : timeout_(timeout) {}

  // What the next on_sent() will return.
  std::uint64_t next_sequence() const noexcept { return first_sequence_ + window_.size(); }
  // Returns its sequence number, the first is 0.
  std::uint64_t on_sent(Instant now);
  // The last on_sent() was not sent after all.
  void on_refused() noexcept;
  // The same, for want of an address handle: counted apart.
  void on_unsent() noexcept;
  void on_reply(std::uint64_t sequence, bool intact, Instant now);
  // Gives up what is due.
  void on_time(Instant now);
  // Nothing further will come: gives up all.
  void on_end();

  std::size_t outstanding() const noexcept { return unanswered_; }
  // When the oldest is to be given up.
  std::optional<Instant> next_timeout() const noexcept;
  const PingCounts& counts() const noexcept { return counts_; }
  // Sent and neither answered nor still outstanding.
  std::uint64_t lost() const noexcept { return counts_.sent - counts_.received - counts_.late - unanswered_; }
  const LatencyDistribution& latency() const noexcept { return latency_; }

 private:
  struct Ping {
    Instant sent;
    bool answered = false;
  };

  void give_up_oldest();
  void forget_answered();

  Duration timeout_;
  std::deque<Ping> window_;           // from the oldest that is outstanding to the newest
  std::uint64_t first_sequence_ = 0;  // of window_'s front
  std::size_t unanswered_ = 0;
  std::set<std::uint64_t> given_up_;  // the newest of them, to tell a late answer from a duplicate
  PingCounts counts_;
  LatencyDistribution latency_;
};

}  // namespace verbena::cli
