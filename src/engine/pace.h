// The pace of one direction of a connection: the static rate of its path, or what congestion leaves of it.
//
// Thread-safety: none; the side of the queue pair whose packets it holds back owns it.
// Ownership:     keeps a reference to the connection.
#pragma once

#include <cstdint>

#include "base/instant.h"
#include "engine/connection.h"
#include "engine/pacer.h"
#include "engine/rate.h"
#include "engine/reaction_point.h"

namespace verbena::engine {

class Pace {
 public:
  explicit Pace(const Connection& connection) noexcept : connection_(connection) {}

  // What a packet cost; nothing where there is no pace.
  struct Spent {
    std::uint32_t ns = 0;
    std::uint32_t bytes = 0;
  };

  // Whether a packet may leave now.
  bool may_send(Instant now) noexcept { return period_ == 0 || may_send_paced(now); }
  // It left.
  Spent on_sent(Instant now, std::uint32_t bytes) noexcept { return period_ == 0 ? Spent{} : charge(now, bytes); }
  // It did not leave after all.
  void refund(Spent spent) noexcept {
    pacer_.refund(Duration(spent.ns));
    reaction_.on_rewound(spent.bytes);
  }
  bool is_unlimited() const noexcept { return period_ == 0; }
  Instant free_at() const noexcept { return pacer_.free_at(); }

  void on_cnp(Instant now) noexcept;
  // The static rate, the window or the timeout of the connection may have changed.
  void on_path() noexcept;
  void reset() noexcept;

  // What congestion asks for, without the static rate.
  const ReactionPoint& reaction() const noexcept { return reaction_; }

 private:
  bool may_send_paced(Instant now) noexcept;
  Spent charge(Instant now, std::uint32_t bytes) noexcept;

  const Connection& connection_;
  BytePeriod period_ = 0;  // of both; 0: as fast as may be
  Pacer pacer_;
  ReactionPoint reaction_;
};

}  // namespace verbena::engine
