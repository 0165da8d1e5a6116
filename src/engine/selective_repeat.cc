#include "engine/selective_repeat.h"

#include <algorithm>

namespace verbena::engine {
namespace {

constexpr int kPatienceInTimeout = 8;  // at least as many in an ACK timeout
constexpr int kAgain = 8;              // at least as many before anything is sent a second time
constexpr int kRoundTrips = 2;
constexpr Duration kLongest = std::chrono::seconds(1);

}  // namespace

SelectiveRepeat::SelectiveRepeat(Psn unacked, Duration ack_timeout) noexcept
    : base_(unacked), reached_(unacked), told_(unacked), patience_(kPatience) {
  if (ack_timeout.count() != 0) patience_ = std::min(patience_, ack_timeout / kPatienceInTimeout);
  again_after_ = kAgain * patience_;
  early_.advance(unacked);
}

void SelectiveRepeat::on_reached(Psn end, Instant now) noexcept {
  const std::int32_t further = end.distance_from(reached_);
  if (further <= 0) return;
  // What was said of requests does not hold for the answers to them.
  if (further >= static_cast<std::int32_t>(kReach)) {
    arrived_.reset();
    repeated_.reset();
  } else {
    for (Psn psn = reached_; psn != end; ++psn) arrived_.reset(place_of(psn));
    for (Psn psn = reached_; psn != end; ++psn) repeated_.reset(place_of(psn));
  }
  reached_ = end;
  wait(now);
}

void SelectiveRepeat::on_told(Psn psn, const wire::SelectiveEth& arrived, Psn highest, Instant now) noexcept {
  for (std::uint32_t i = 0; i < wire::SelectiveEth::kPackets; ++i) {
    if (!arrived.has(i)) continue;
    const Psn there = psn + 1 + i;
    if (there.distance_from(highest) >= 0 || there.distance_from(base_) >= static_cast<std::int32_t>(kReach)) break;
    if (there.distance_from(reached_) < 0 || there.distance_from(base_) < 0) continue;
    arrived_.set(place_of(there));
    if (there.distance_from(told_) >= 0) told_ = there + 1;
  }
  wait(now);
}

// Something behind what is missing was seen: those that are missing have their time.
void SelectiveRepeat::wait(Instant now) noexcept {
  if (overdue_at_ || !is_waiting()) return;
  overdue_at_ = now + patience_;
  overdue_end_ = evidence();
}

void SelectiveRepeat::on_progress(Psn unacked, Instant now) noexcept {
  const std::int32_t passed = unacked.distance_from(base_);
  if (passed == 0) return;
  if (passed < 0 || passed >= static_cast<std::int32_t>(kReach)) {
    arrived_.reset();
    repeated_.reset();
  } else {
    for (Psn psn = base_; psn != unacked; ++psn) {
      arrived_.reset(place_of(psn));
      repeated_.reset(place_of(psn));
    }
  }
  base_ = unacked;
  early_.advance(unacked);
  if (reached_.distance_from(base_) < 0) reached_ = base_;
  if (told_.distance_from(base_) < 0) told_ = base_;
  if (repeated_at_ && unacked.distance_from(repeated_psn_) > 0) {
    again_after_ = std::clamp(kRoundTrips * (now - *repeated_at_), kAgain * patience_, kLongest);
    repeated_at_.reset();
    if (again_at_) again_at_ = now + again_after_;
  }
  if (!is_waiting()) {
    overdue_at_.reset();
    again_at_.reset();
  }
}

std::optional<Instant> SelectiveRepeat::next_timeout() const noexcept {
  if (overdue_at_ && again_at_) return std::min(*overdue_at_, *again_at_);
  return overdue_at_ ? overdue_at_ : again_at_;
}

bool SelectiveRepeat::on_time(Instant now) noexcept {
  const bool again = again_at_ && *again_at_ <= now;
  const bool overdue = overdue_at_ && *overdue_at_ <= now;
  if (!again && !overdue) return false;
  Psn end = overdue_end_;
  if (again) {
    repeated_.reset();
    again_at_.reset();
    again_after_ = std::min(2 * again_after_, kLongest);
    if (!overdue) end = evidence();
  }
  if (overdue) {
    overdue_at_.reset();
    // What was seen since then has its time from now on.
    if (evidence().distance_from(overdue_end_) > 0) wait(now);
  }
  in_pass_ = true;
  pass_repeats_ = false;
  pass_at_ = base_;
  pass_end_ = end;
  return true;
}

void SelectiveRepeat::begin_pass(Psn end) noexcept {
  give_up();
  in_pass_ = true;
  pass_repeats_ = false;
  pass_at_ = base_;
  pass_end_ = end;
}

void SelectiveRepeat::end_pass(Instant now) noexcept {
  in_pass_ = false;
  if (!pass_repeats_) return;
  if (!again_at_ && is_waiting()) again_at_ = now + again_after_;
  if (!repeated_at_) repeated_at_ = now;
}

void SelectiveRepeat::give_up() noexcept {
  in_pass_ = false;
  repeated_.reset();
  overdue_at_.reset();
  again_at_.reset();
  repeated_at_.reset();
}

void SelectiveRepeat::on_repeated(Psn from, Psn end) noexcept {
  for (Psn psn = from; psn != end; ++psn) repeated_.set(place_of(psn));
  if (!repeated_at_ && !pass_repeats_) repeated_psn_ = from;
  pass_at_ = end;
  pass_repeats_ = true;
}

void SelectiveRepeat::on_rewound(Psn from, Psn end) noexcept {
  for (Psn psn = from; psn != end; ++psn) repeated_.reset(place_of(psn));
  if (!in_pass_ || from.distance_from(pass_at_) < 0) pass_at_ = from;
  if (!in_pass_ || end.distance_from(pass_end_) > 0) pass_end_ = end;
  in_pass_ = true;
}

}  // namespace verbena::engine
