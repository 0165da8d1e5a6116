// A port as the engine must know it: a view of what its owner keeps current.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/limits.h"
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
  std::uint8_t count = 1;  // of the device's ports
  LinkLayer link_layer = LinkLayer::kEthernet;
  std::uint32_t mtu = 1024;         // bytes of payload in a packet: 256, 512, 1024, 2048 or 4096
  std::uint32_t frame_size = 1518;  // bytes of the longest Ethernet frame, without its check sequence
  std::span<const GidEntry> gids;
  // InfiniBand only.
  std::uint16_t lid = 0;                   // the first of 2^lmc
  std::uint8_t lmc = 0;                    // 0 to 7
  std::uint16_t process_port = 0;          // which of the ports of the process it is: LinkRoute::port of what it sends
  std::span<const std::uint16_t> pkeys{};  // 0: the entry is empty. None at all: the default P_Key alone

  std::size_t pkey_count() const noexcept { return pkeys.empty() ? kPkeyTableLength : pkeys.size(); }
  // Nothing where the index is empty or out of the table.
  std::optional<std::uint16_t> pkey_at(std::size_t index) const noexcept {
    if (pkeys.empty()) return index < kPkeyTableLength ? std::optional(kDefaultPkey) : std::nullopt;
    return index < pkeys.size() && pkeys[index] != 0 ? std::optional(pkeys[index]) : std::nullopt;
  }
};

// Why `asked` is not this port, as a sentence's part: no port of the device, or another than `what` ("the queue pair")
// is on. Requires: asked != port.number.
std::string why_not(std::uint8_t asked, const PortView& port, std::string_view what);

}  // namespace verbena::engine
