// Tells the other end of a connection that the network marked its packets: the notification point of DCQCN
// (InfiniBand Architecture volume 1, annex A17.9.3). At most one CNP in an interval, however many marks.
//
//   on_marked() ──> is_due() ──> on_yielded() ──> on_transmitted()
//                      ^               └── rewind() ──┐
//                      └──────────────────────────────┘
//
// Thread-safety: on_marked() and is_due() from any thread; the rest is the receive side's.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "base/instant.h"

namespace verbena::engine {

// The ECN bits of a traffic class (RFC 3168).
inline constexpr std::uint8_t kEcnMask = 0x3;
inline constexpr std::uint8_t kEcnCapable = 0x2;      // ECT(0)
inline constexpr std::uint8_t kEcnExperienced = 0x3;  // CE
// What a CNP travels with: class selector 6, above the data, as network cards send it.
inline constexpr std::uint8_t kCnpTrafficClass = (48U << 2) | kEcnCapable;

constexpr bool is_marked(std::uint8_t traffic_class) noexcept {
  return (traffic_class & kEcnMask) == kEcnExperienced;
}

class NotificationPoint {
 public:
  static constexpr Duration kInterval{50'000};

  // A packet arrived with a mark.
  void on_marked(Instant now) noexcept {
    std::int64_t next = next_.load(std::memory_order_relaxed);
    if (now.ns < next) return;
    // Who comes second has been answered by the first.
    if (next_.compare_exchange_strong(next, (now + kInterval).ns, std::memory_order_relaxed)) {
      due_.store(true, std::memory_order_relaxed);
    }
  }
  bool is_due() const noexcept { return due_.load(std::memory_order_relaxed); }

  bool is_yielded() const noexcept { return yielded_; }
  void on_yielded() noexcept { yielded_ = true; }
  void on_transmitted() noexcept {
    yielded_ = false;
    due_.store(false, std::memory_order_relaxed);
  }
  void rewind() noexcept { yielded_ = false; }
  void reset() noexcept {
    on_transmitted();
    next_.store(std::numeric_limits<std::int64_t>::min(), std::memory_order_relaxed);
  }

 private:
  // Relaxed: neither guards other memory.
  std::atomic<std::int64_t> next_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<bool> due_{false};
  bool yielded_ = false;  // and not known to be transmitted
};

}  // namespace verbena::engine
