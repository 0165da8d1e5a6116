// How fast a connection may send in one direction once the network has told it that there is congestion: the reaction
// point of DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3; the names
// of the rates are theirs).
//
//                 CNP                       time or bytes                     rate reaches the line
//   unlimited ──────────> target = rate ──────────────────> rate goes half the ───────────────────> unlimited
//                         rate falls by alpha / 2           way to the target
//
// Every kIncreaseInterval and every kIncreaseBytes is a stage. While neither count of stages is above kFastStages the
// target stays (fast recovery); once one is, it rises by a fixed step (additive); once both are, by more each time
// (hyper). Alpha tells how much of the time there was congestion lately: it rises with each CNP and decays without.
//
// The steps are parts of the line's rate, since there is no telling beforehand how fast a line will be.
//
// Thread-safety: none; the side of the queue pair whose packets it holds back owns it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/instant.h"
#include "engine/rate.h"

namespace verbena::engine {

class ReactionPoint {
 public:
  static constexpr Duration kAlphaInterval{55'000};
  static constexpr Duration kIncreaseInterval{300'000};
  static constexpr std::uint64_t kIncreaseBytes = 1'000'000;
  static constexpr unsigned kFastStages = 5;
  // Senders of CNPs leave longer between two for one flow; a copy of one must not count twice.
  static constexpr Duration kLeastBetweenCuts{4'000};
  static constexpr std::uint64_t kAdditivePart = 500;  // of the line's rate, for each stage
  static constexpr std::uint64_t kHyperPart = 50;
  static constexpr std::uint64_t kLeastPart = 1'000;  // the rate does not fall below
  static constexpr unsigned kAlphaShift = 16;
  static constexpr std::uint32_t kOne = 1U << kAlphaShift;
  static constexpr unsigned kGainShift = 8;  // g of the paper is 1/256

  // A CNP. `line_rate` in bits a second: what the port can do, at which an unlimited connection is taken to send.
  void on_cnp(Instant now, std::uint64_t line_rate) noexcept;
  // Time passes. To be called before what follows is asked, while it is limited.
  void advance(Instant now) noexcept;
  // Bytes left, while it is limited.
  void on_sent(std::uint32_t bytes) noexcept;
  // So many did not, after all: the transport had no room.
  void on_rewound(std::uint32_t bytes) noexcept { bytes_ -= std::min<std::uint64_t>(bytes_, bytes); }

  bool is_limited() const noexcept { return period_ != 0; }
  // How long a byte takes at the rate; 0 where it is not limited.
  BytePeriod period() const noexcept { return period_; }
  std::uint64_t rate() const noexcept { return rate_; }
  std::uint64_t target() const noexcept { return target_; }
  std::uint32_t alpha() const noexcept { return alpha_; }  // in parts of kOne

 private:
  void decay_alpha(Instant now) noexcept;
  void increase() noexcept;
  void set_rate(std::uint64_t rate) noexcept;

  BytePeriod period_ = 0;
  std::uint32_t alpha_ = kOne;
  std::uint64_t line_ = 0;
  std::uint64_t rate_ = 0;
  std::uint64_t target_ = 0;
  std::uint64_t bytes_ = 0;  // since the last stage of bytes
  unsigned time_stages_ = 0;
  unsigned byte_stages_ = 0;
  Instant cut_at_;
  Instant decays_at_;
  Instant increases_at_;
};

}  // namespace verbena::engine
