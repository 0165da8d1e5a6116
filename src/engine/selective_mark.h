// How an end of a reliable connection says that it can repeat selectively, in packets that any peer takes.
//
// The bit MigReq of the BTH speaks of alternate paths (InfiniBand Architecture volume 1, section 17.2.8). Where there
// is none, a device sets it always (it has migrated), or never, and takes either from the other end. An end that
// repeats selectively sets it to one bit of a hash of the packet's PSN and destination queue pair. Who has seen as many
// packets in a row with the right value as kEnough, each further on than the one before, knows that the other end said
// so. What is lost or changed on the way makes that later, or never: then both go back N. Who has heard kInVain packets
// and knows nothing of the kind says nothing any more: from then on its packets are as those of any device.
//
// Thread-safety: none; the side of the queue pair that receives owns it.
#pragma once

#include <cstdint>

#include "base/psn.h"
#include "base/qpn.h"
#include "wire/bth.h"

namespace verbena::engine {

constexpr bool selective_mark(Psn psn, Qpn destination) noexcept {
  std::uint64_t mixed = (std::uint64_t{destination.value()} << 24 | psn.value()) * 0x9e3779b97f4a7c15ULL;
  mixed ^= mixed >> 32;
  mixed *= 0xd6e8feb86659fd93ULL;
  return mixed >> 63 != 0;
}

class PeerAbility {
 public:
  // A value that never changes is right so often in a row somewhere on the circle of 2^24 PSNs for one queue pair in
  // 2^41.
  static constexpr std::uint8_t kEnough = 64;
  static constexpr std::uint16_t kInVain = 4096;

  bool is_able() const noexcept { return seen_ == kEnough; }
  // It has shown it in another way.
  void set_able() noexcept { seen_ = kEnough; }
  void reset() noexcept { *this = {}; }
  // What a packet to it has in MigReq.
  bool mark(Psn psn, Qpn destination) const noexcept { return heard_ == kInVain || selective_mark(psn, destination); }
  // Requires: !is_able().
  void on_packet(const wire::Bth& bth) noexcept {
    if (heard_ != kInVain) ++heard_;
    if (seen_ != 0 && bth.psn.distance_from(latest_) <= 0) return;
    latest_ = bth.psn;
    seen_ = bth.migration_request == selective_mark(bth.psn, bth.destination_qpn) ? static_cast<std::uint8_t>(seen_ + 1)
                                                                                  : std::uint8_t{0};
  }

 private:
  std::uint16_t heard_ = 0;
  std::uint8_t seen_ = 0;
  Psn latest_;
};

}  // namespace verbena::engine
