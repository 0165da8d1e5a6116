#include "cli/round_trips.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kMaxGivenUp = 65536;

}  // namespace

std::uint64_t RoundTrips::on_sent(Instant now) {
  window_.push_back({now, false});
  ++unanswered_;
  ++counts_.sent;
  return first_sequence_ + window_.size() - 1;
}

void RoundTrips::on_refused() noexcept {
  window_.pop_back();
  --unanswered_;
  --counts_.sent;
}

void RoundTrips::on_unsent() noexcept {
  on_refused();
  ++counts_.unsent;
}

void RoundTrips::on_reply(std::uint64_t sequence, bool intact, Instant now) {
  if (sequence >= first_sequence_ + window_.size()) {
    ++counts_.unknown;
    return;
  }
  if (!intact) {
    ++counts_.corrupt;
    return;
  }
  if (sequence < first_sequence_) {
    ++(given_up_.erase(sequence) == 1 ? counts_.late : counts_.duplicate);
    return;
  }
  Ping& ping = window_[static_cast<std::size_t>(sequence - first_sequence_)];
  if (ping.answered) {
    ++counts_.duplicate;
    return;
  }
  ping.answered = true;
  --unanswered_;
  ++counts_.received;
  latency_.add(now - ping.sent);
  forget_answered();
}

void RoundTrips::on_time(Instant now) {
  while (!window_.empty() && window_.front().sent + timeout_ <= now) give_up_oldest();
}

void RoundTrips::on_end() {
  while (!window_.empty()) give_up_oldest();
}

std::optional<Instant> RoundTrips::next_timeout() const noexcept {
  if (window_.empty()) return std::nullopt;
  return window_.front().sent + timeout_;
}

void RoundTrips::give_up_oldest() {
  if (!window_.front().answered) {
    --unanswered_;
    given_up_.insert(given_up_.end(), first_sequence_);
    if (given_up_.size() > kMaxGivenUp) given_up_.erase(given_up_.begin());
  }
  window_.pop_front();
  ++first_sequence_;
  forget_answered();
}

// The front is always outstanding, so that next_timeout() is exact.
void RoundTrips::forget_answered() {
  while (!window_.empty() && window_.front().answered) {
    window_.pop_front();
    ++first_sequence_;
  }
}

}  // namespace verbena::cli
