#include "transport/fork_set.h"

#include <bit>

#include <unistd.h>

namespace verbena::transport {

void ForkSet::add(int fd) noexcept {
  if (fd < 0 || fd >= kLimit) return;
  bits_[static_cast<std::size_t>(fd) / 64].fetch_or(std::uint64_t{1} << (fd % 64), std::memory_order_relaxed);
}

void ForkSet::remove(int fd) noexcept {
  if (fd < 0 || fd >= kLimit) return;
  bits_[static_cast<std::size_t>(fd) / 64].fetch_and(~(std::uint64_t{1} << (fd % 64)), std::memory_order_relaxed);
}

void ForkSet::close_all() noexcept {
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    for (auto bits = bits_[i].exchange(0, std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
      ::close(static_cast<int>(i * 64) + std::countr_zero(bits));
    }
  }
}

}  // namespace verbena::transport
