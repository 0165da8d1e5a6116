#include "engine/flow_rule.h"

#include <array>
#include <cstddef>

namespace verbena::engine {
namespace {

using wire::FrameFields;

template <std::size_t Size>
bool agree(const std::array<std::uint8_t, Size>& field, const std::array<std::uint8_t, Size>& value,
           const std::array<std::uint8_t, Size>& mask) noexcept {
  for (std::size_t i = 0; i < Size; ++i) {
    if (((field[i] ^ value[i]) & mask[i]) != 0) return false;
  }
  return true;
}

}  // namespace

bool matches(const FrameFields& fields, const FrameFields& value, const FrameFields& mask) noexcept {
  const auto same = [&](auto member) { return ((fields.*member ^ value.*member) & mask.*member) == 0; };
  return same(&FrameFields::ip_version) && same(&FrameFields::transport) && same(&FrameFields::destination_port) &&
         same(&FrameFields::source_port) &&
         agree(fields.destination.bytes, value.destination.bytes, mask.destination.bytes) &&
         agree(fields.source.bytes, value.source.bytes, mask.source.bytes) && same(&FrameFields::ether_type) &&
         same(&FrameFields::is_tagged) && same(&FrameFields::vlan_tag) &&
         agree(fields.ip_source, value.ip_source, mask.ip_source) &&
         agree(fields.ip_destination, value.ip_destination, mask.ip_destination) && same(&FrameFields::next_header) &&
         same(&FrameFields::traffic_class) && same(&FrameFields::hop_limit) && same(&FrameFields::ipv4_flags) &&
         same(&FrameFields::flow_label);
}

bool FlowRule::takes(const FrameFields& fields) const noexcept {
  switch (kind) {
    case FlowKind::kNormal:
      return matches(fields, value, mask);
    case FlowKind::kGroupDefault:
      return wire::is_group(fields.destination);
    case FlowKind::kAllDefault:
    case FlowKind::kSniffer:
      return true;
  }
  return false;
}

bool FlowRule::is_twin_of(const FlowRule& other) const noexcept {
  if (kind != other.kind) return false;
  if (kind != FlowKind::kNormal) return true;
  return priority == other.priority && mask == other.mask && matches(value, other.value, mask);
}

}  // namespace verbena::engine
