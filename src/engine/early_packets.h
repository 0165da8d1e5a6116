// Packets that came before one that is missing: kept, each in memory of its own, until their turn comes.
//
//   base                            base + kReach
//    │ missing │ kept │ missing │ kept │ ...  │
//    └─────────┴──────┴─────────┴──────┴──────┘──>  PSNs
//
// Thread-safety: none; the side of the queue pair that receives owns it.
// Ownership:     keeps copies of the packets and of their payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/psn.h"
#include "wire/packet.h"

namespace verbena::engine {

// `packet.payload` is in the object itself.
struct EarlyPacket {
  wire::Packet packet;
  std::unique_ptr<std::byte[]> payload;
};

class EarlyPackets {
 public:
  // PSNs from `base` on that have a place. A power of two, so that the circle of PSNs has no seam.
  static constexpr std::uint32_t kReach = 128;

  bool empty() const noexcept { return count_ == 0; }
  bool has(Psn psn) const noexcept {
    const auto& place = places_[place_of(psn)];
    return place != nullptr && place->packet.bth.psn == psn;
  }
  // Everything before `base` has come; what is kept of it goes.
  void advance(Psn base) noexcept;
  // False where it is out of reach or there is no memory. Of two copies the first stays.
  bool keep(const wire::Packet& packet) noexcept;
  // Nothing where it is not there.
  std::unique_ptr<EarlyPacket> take(Psn psn) noexcept;

 private:
  static constexpr std::size_t place_of(Psn psn) noexcept { return psn.value() % kReach; }

  std::array<std::unique_ptr<EarlyPacket>, kReach> places_;
  std::uint32_t count_ = 0;
  Psn base_;
};

}  // namespace verbena::engine
