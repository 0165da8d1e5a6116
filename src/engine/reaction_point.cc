#include "engine/reaction_point.h"

#include <algorithm>

namespace verbena::engine {
namespace {

constexpr std::uint64_t kLeastRate = 2'000'000;  // what a BytePeriod can still say
// As near to the line's rate that holding back is not worth its cost.
constexpr std::uint64_t kLinePart = 64;

}  // namespace

void ReactionPoint::on_cnp(Instant now, std::uint64_t line_rate) noexcept {
  if (is_limited()) advance(now);
  if (is_limited()) {
    if (now - cut_at_ < kLeastBetweenCuts) return;
  } else {
    line_ = rate_ = line_rate;
    alpha_ = kOne;
  }
  target_ = rate_;
  set_rate(rate_ - ((rate_ * alpha_) >> (kAlphaShift + 1)));
  alpha_ += (kOne - alpha_) >> kGainShift;
  time_stages_ = byte_stages_ = 0;
  bytes_ = 0;
  cut_at_ = now;
  decays_at_ = now + kAlphaInterval;
  increases_at_ = now + kIncreaseInterval;
}

void ReactionPoint::advance(Instant now) noexcept {
  // Each stage brings the rate nearer to the line's, so there is an end even after the longest silence.
  while (is_limited() && increases_at_ <= now) {
    increases_at_ = increases_at_ + kIncreaseInterval;
    ++time_stages_;
    increase();
  }
  decay_alpha(now);
}

void ReactionPoint::decay_alpha(Instant now) noexcept {
  while (decays_at_ <= now && alpha_ >> kGainShift != 0) {
    alpha_ -= alpha_ >> kGainShift;
    decays_at_ = decays_at_ + kAlphaInterval;
  }
}

void ReactionPoint::on_sent(std::uint32_t bytes) noexcept {
  bytes_ += bytes;
  if (bytes_ < kIncreaseBytes) return;
  bytes_ -= kIncreaseBytes;
  ++byte_stages_;
  increase();
}

void ReactionPoint::increase() noexcept {
  const unsigned least = std::min(time_stages_, byte_stages_);
  if (least > kFastStages) {
    target_ += (least - kFastStages) * (line_ / kHyperPart);
  } else if (std::max(time_stages_, byte_stages_) > kFastStages) {
    target_ += line_ / kAdditivePart;
  }
  target_ = std::min(target_, line_);
  set_rate((rate_ + target_) / 2);
}

void ReactionPoint::set_rate(std::uint64_t rate) noexcept {
  rate_ = std::max({rate, line_ / kLeastPart, kLeastRate});
  period_ = rate_ >= line_ - line_ / kLinePart ? 0 : byte_period(rate_);
}

}  // namespace verbena::engine
