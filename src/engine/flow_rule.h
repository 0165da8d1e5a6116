// A rule of flow steering: which frames it is for, and what becomes of them (ibv_create_flow). The numbers are those of
// verbs.h.
#pragma once

#include <cstdint>

#include "wire/ethernet_frame.h"

namespace verbena::engine {

// kNormal: what it matches, by priority. The defaults: what no normal rule takes. kSniffer: a copy of everything.
enum class FlowKind : std::uint8_t { kNormal = 0, kAllDefault = 1, kGroupDefault = 2, kSniffer = 3 };

// Whether the bits of `fields` that `mask` names are those of `value`.
bool matches(const wire::FrameFields& fields, const wire::FrameFields& value, const wire::FrameFields& mask) noexcept;

struct FlowRule {
  FlowKind kind = FlowKind::kNormal;
  std::uint16_t priority = 0;  // of normal rules: the lowest is asked first
  bool drops = false;          // what it takes goes to nobody
  bool passes_on = false;      // what it takes goes on to the rules behind it as well
  std::uint8_t port = 1;
  wire::FrameFields value;  // of kNormal
  wire::FrameFields mask;

  bool takes(const wire::FrameFields& fields) const noexcept;
  // Whether both are asked at the same time, for the same frames.
  bool is_twin_of(const FlowRule& other) const noexcept;
};

}  // namespace verbena::engine
