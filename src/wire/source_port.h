// The UDP source port of a RoCEv2 flow, which routers hash to choose among equal paths (annex A17; Linux
// include/rdma/ib_verbs.h fixes the folding that hardware and kernel share). Always within 0xC000 to 0xFFFF.
#pragma once

#include <cstdint>

#include "base/qpn.h"

namespace verbena::wire {

inline constexpr std::uint16_t kFirstSourcePort = 0xc000;
inline constexpr std::uint32_t kFlowLabelMask = 0xfffff;

constexpr std::uint16_t source_port_of_flow_label(std::uint32_t flow_label) noexcept {
  const std::uint32_t low = flow_label & 0x03fffU;
  const std::uint32_t high = flow_label & 0xfc000U;
  return static_cast<std::uint16_t>((low ^ (high >> 14)) | kFirstSourcePort);
}

// The flow label of a connection that was given none.
constexpr std::uint32_t flow_label_of(Qpn local, Qpn remote) noexcept {
  std::uint64_t mixed = std::uint64_t{local.value()} * remote.value();
  mixed ^= mixed >> 20;
  mixed ^= mixed >> 40;
  return static_cast<std::uint32_t>(mixed & kFlowLabelMask);
}

// For a connection: from its flow label, or from its two QPNs where that is 0.
constexpr std::uint16_t source_port(std::uint32_t flow_label, Qpn local, Qpn remote) noexcept {
  const std::uint32_t given = flow_label & kFlowLabelMask;
  return source_port_of_flow_label(given != 0 ? given : flow_label_of(local, remote));
}

// For a datagram without flow label: from the sender's QPN alone, as Linux' rxe does, so that the packets of one queue
// pair stay in order.
constexpr std::uint16_t source_port_of_qpn(Qpn local) noexcept {
  constexpr std::uint32_t kGoldenRatio = 0x61c88647;
  const std::uint32_t hash = (local.value() * kGoldenRatio) >> (32 - 14);
  return static_cast<std::uint16_t>(kFirstSourcePort + hash);
}

}  // namespace verbena::wire
