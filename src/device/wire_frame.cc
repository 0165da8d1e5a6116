#include "device/wire_frame.h"

#include <algorithm>

namespace verbena::device {

const transport::Outgoing& WireFrame::seal(const transport::Outgoing& plain, transport::UdpPort* udp_port) noexcept {
  envelope_ = *plain.envelope;
  if (udp_port != nullptr) envelope_.source_port = udp_port->reserve_source_port(envelope_.source_port);
  const auto size = plain.size + static_cast<std::uint32_t>(wire::kIcrcSize);
  header_.emplace(envelope_, size);
  wire::store_icrc(wire::compute_icrc(header_->bytes(), plain.parts), icrc_);
  const auto end = std::copy(plain.parts.begin(), plain.parts.end(), parts_.begin());
  *end = icrc_;
  sealed_ = {.envelope = &envelope_,
             .parts = std::span(parts_).first(plain.parts.size() + 1),
             .size = size,
             .slot = plain.slot,
             .has_icrc = true,
             .network_header = header_->bytes()};
  return sealed_;
}

}  // namespace verbena::device
