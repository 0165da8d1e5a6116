#include "transport/shm/ring_sender.h"

#include <utility>

#include <unistd.h>

#include "transport/no_cancel.h"

namespace verbena::transport {
namespace {

void ring_doorbell(int doorbell) noexcept {
  const NoCancel guard;
  const std::uint64_t one = 1;
  // A failure means that its counter is full: then it rings already.
  [[maybe_unused]] const auto written = ::write(doorbell, &one, sizeof one);
}

}  // namespace

bool RingSender::is_stalled(Instant now) noexcept {
  const auto consumed = ring_.consumed();
  if (consumed != full_at_) {
    full_at_ = consumed;
    full_since_ = now;
  }
  return now - full_since_ >= stall_limit_;
}

RingSender::Outcome RingSender::send(std::span<const Outgoing> batch, Instant now, DropCounter& drops) noexcept {
  Outcome outcome;
  std::size_t stored = 0;
  for (const auto& datagram : batch) {
    const auto push = ring_.push(*datagram.envelope, datagram.parts, datagram.size, datagram.has_icrc);
    if (push == host::Push::kStored) {
      ++stored;
    } else if (push == host::Push::kTooLong) {
      drops.count(Drop::kDatagramTooLong);
    } else if (push == host::Push::kFull && is_stalled(now)) {
      drops.count(Drop::kPeerStalled);
    } else {
      outcome.sent.full = push == host::Push::kFull;
      outcome.broken = push == host::Push::kBroken;
      break;
    }
    ++outcome.sent.taken;
  }
  ring_.publish();
  if (stored != 0 && ring_.take_doorbell()) ring_doorbell(doorbell_);
  return outcome;
}

void RingSender::nudge() noexcept {
  if (!ring_.has_unread()) return;
  const auto consumed = ring_.consumed();
  if (consumed != seen_at_nudge_) {
    seen_at_nudge_ = consumed;
    nudged_ = false;
  } else if (!std::exchange(nudged_, true)) {
    ring_doorbell(doorbell_);
  }
}

}  // namespace verbena::transport
