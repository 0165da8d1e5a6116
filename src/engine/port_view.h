// A port as the engine must know it: a view of what its owner keeps current.
#pragma once

#include <cstdint>
#include <span>

#include "verbena/gid.h"

namespace verbena::engine {

enum class LinkLayer : std::uint8_t { kInfiniband = 1, kEthernet = 2 };
enum class GidType : std::uint8_t { kInfiniband = 0, kRoceV1 = 1, kRoceV2 = 2 };

struct GidEntry {
  Gid gid;  // zero: the entry is empty
  GidType type = GidType::kRoceV2;
};

struct PortView {
  std::uint8_t number = 1;
  LinkLayer link_layer = LinkLayer::kEthernet;
  std::uint32_t mtu = 1024;  // bytes of payload in a packet: 256, 512, 1024, 2048 or 4096
  std::span<const GidEntry> gids;
};

}  // namespace verbena::engine
