#include "engine/pace.h"

#include <algorithm>

namespace verbena::engine {
namespace {

// A whole window takes half of the ACK timeout at most: being slow must not look like being gone.
BytePeriod slowest(const Connection& connection) noexcept {
  const auto timeout = static_cast<std::uint64_t>(connection.ack_timeout.count());
  if (timeout == 0) return UINT32_MAX;
  const std::uint64_t bytes = std::uint64_t{2} * connection.window * connection.mtu;
  const std::uint64_t period = (timeout << kBytePeriodShift) / bytes;
  return static_cast<BytePeriod>(std::clamp<std::uint64_t>(period, 1, UINT32_MAX));
}

}  // namespace

bool Pace::may_send_paced(Instant now) noexcept {
  if (reaction_.is_limited()) {
    reaction_.advance(now);
    on_path();
  }
  return pacer_.may_send(now);
}

Pace::Spent Pace::charge(Instant now, std::uint32_t bytes) noexcept {
  const Duration cost = pacer_.on_sent(now, period_, bytes);
  if (reaction_.is_limited()) {
    reaction_.on_sent(bytes);
    on_path();
  }
  return {static_cast<std::uint32_t>(cost.count()), bytes};
}

void Pace::on_cnp(Instant now) noexcept {
  reaction_.on_cnp(now, connection_.line_rate);
  on_path();
}

void Pace::on_path() noexcept {
  period_ = connection_.byte_period;
  if (reaction_.is_limited()) period_ = std::max(period_, std::min(reaction_.period(), slowest(connection_)));
}

void Pace::reset() noexcept {
  pacer_ = {};
  reaction_ = {};
  on_path();
}

}  // namespace verbena::engine
