#include "device/infiniband_frame.h"

#include <algorithm>

namespace verbena::device {

Envelope captured_envelope() noexcept {
  const Gid here = Gid::from_ipv4(0x7f000001);
  return {.source = here, .destination = here, .source_port = wire::kInfinibandUdpPort};
}

const transport::Outgoing& InfinibandFrame::seal(const transport::Outgoing& plain, const Routes& routes,
                                                 bool with_icrc) noexcept {
  envelope_ = *plain.envelope;
  envelope_.link.source_lid = source_lid(routes, envelope_.link);
  header_.emplace(envelope_, plain.size + wire::kIcrcSize);
  const auto header = header_->bytes();
  parts_[0] = header;
  auto* end = std::copy(plain.parts.begin(), plain.parts.end(), parts_.begin() + 1);
  auto size = plain.size + static_cast<std::uint32_t>(header.size());
  if (with_icrc) {
    wire::store_icrc(wire::compute_infiniband_icrc(header, plain.parts), icrc_);
    *end++ = icrc_;
    size += static_cast<std::uint32_t>(wire::kIcrcSize);
    network_header_.emplace(captured_envelope(), size, wire::kInfinibandUdpPort);
  }
  sealed_ = {.envelope = &envelope_,
             .parts = std::span(parts_.begin(), end),
             .size = size,
             .slot = plain.slot,
             .has_icrc = with_icrc,
             .network_header = with_icrc ? network_header_->bytes() : transport::ConstBytes{}};
  return sealed_;
}

const transport::Outgoing& InfinibandFrame::address(const transport::Outgoing& sealed,
                                                    const Envelope& carrier) noexcept {
  if (&sealed != &sealed_) sealed_ = sealed;
  sealed_.envelope = &carrier;
  return sealed_;
}

}  // namespace verbena::device
