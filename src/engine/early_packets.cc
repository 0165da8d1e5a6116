#include "engine/early_packets.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace verbena::engine {

void EarlyPackets::advance(Psn base) noexcept {
  if (count_ != 0) {
    const std::int32_t passed = base.distance_from(base_);
    const bool all = passed < 0 || passed >= static_cast<std::int32_t>(kReach);
    const std::uint32_t places = all ? kReach : static_cast<std::uint32_t>(passed);
    for (std::uint32_t i = 0; i < places; ++i) take(base_ + i);
  }
  base_ = base;
}

bool EarlyPackets::keep(const wire::Packet& packet) noexcept {
  const std::int32_t ahead = packet.bth.psn.distance_from(base_);
  if (ahead < 0 || ahead >= static_cast<std::int32_t>(kReach)) return false;
  auto& place = places_[place_of(packet.bth.psn)];
  if (place != nullptr) return true;
  std::unique_ptr<EarlyPacket> kept(new (std::nothrow) EarlyPacket{packet, nullptr});
  if (kept == nullptr) return false;
  const std::size_t size = packet.payload.size();
  if (size != 0) {
    kept->payload.reset(new (std::nothrow) std::byte[size]);
    if (kept->payload == nullptr) return false;
    std::memcpy(kept->payload.get(), packet.payload.data(), size);
  }
  kept->packet.payload = {kept->payload.get(), size};
  place = std::move(kept);
  ++count_;
  return true;
}

std::unique_ptr<EarlyPacket> EarlyPackets::take(Psn psn) noexcept {
  if (!has(psn)) return nullptr;
  --count_;
  return std::move(places_[place_of(psn)]);
}

}  // namespace verbena::engine
