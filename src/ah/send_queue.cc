#include "ah/send_queue.h"

#include <algorithm>
#include <thread>

namespace verbena::ah {

void SendQueue::retract(std::uint64_t count) noexcept {
  const std::uint64_t possible = std::min(count, outstanding());
  position.store(position.load(std::memory_order_relaxed) - possible, std::memory_order_relaxed);
  add(retracted, possible);
  if (possible != count) add(misused, 1);
}

void SendQueue::complete_through(std::uint64_t reached) noexcept {
  const std::uint64_t posted = position.load(std::memory_order_relaxed);
  if (reached > posted) add(misused, 1);
  const std::uint64_t now = std::min(reached, posted);
  if (now > completed.load(std::memory_order_relaxed)) completed.store(now, std::memory_order_release);
}

std::uint64_t SendQueue::outstanding() const noexcept {
  const std::uint64_t done = completed.load(std::memory_order_relaxed);
  const std::uint64_t posted = position.load(std::memory_order_relaxed);
  return posted > done ? posted - done : 0;
}

// A stamp beyond the position was retracted, but it may have taken the place of an earlier one that was posted: it
// counts as long as anything is in flight.
bool SendQueue::names(std::uint32_t slot) const noexcept {
  const std::uint64_t stamp = stamps[slot].load(std::memory_order_relaxed);
  const std::uint64_t done = completed.load(std::memory_order_acquire);
  return stamp > done && position.load(std::memory_order_relaxed) > done;
}

void SendQueue::wait_outside() const noexcept {
  const std::uint64_t seen = activity.load(std::memory_order_acquire);
  if (seen % 2 == 0) return;
  while (activity.load(std::memory_order_acquire) == seen) std::this_thread::yield();
}

}  // namespace verbena::ah
