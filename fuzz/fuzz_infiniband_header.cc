// The decoder of LRH and GRH.
//
// Input: one byte (bit 0: with ICRC), then a packet. Holds: headers that decode are written again as they were, but for
// the virtual lane and reserved bits, and the ICRC over them does not depend on the virtual lane.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "require.h"
#include "wire/icrc.h"
#include "wire/infiniband_header.h"
#include "wire/packet.h"

namespace verbena::wire {
namespace {

using Bytes = std::vector<std::byte>;

void check(std::span<const std::byte> packet, bool has_icrc) {
  InfinibandHeaderView view;
  if (decode_infiniband_header(packet, has_icrc, view) != Drop::kNone) return;
  fuzz::require(view.size == kLrhSize || view.size == kMaxInfinibandHeaderSize, "the headers have a length");
  fuzz::require(view.size <= packet.size(), "nothing past the end");
  fuzz::require(view.envelope.is_infiniband(), "what decodes has a LID");
  const std::size_t behind = packet.size() - view.size + (has_icrc ? 0 : kIcrcSize);
  Bytes expected(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(view.size));
  expected[0] &= std::byte{0x0f};
  expected[1] &= std::byte{0xf3};
  expected[4] &= std::byte{0x07};
  const InfinibandHeader again(view.envelope, behind);
  fuzz::require(std::ranges::equal(again.bytes(), expected), "the headers survive");

  Bytes other_lane(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(view.size));
  other_lane[0] ^= std::byte{0x50};
  const std::span<const std::byte> rest[] = {packet.subspan(view.size)};
  fuzz::require(compute_infiniband_icrc(packet.first(view.size), rest) == compute_infiniband_icrc(other_lane, rest),
                "the ICRC leaves the lane out");
}

}  // namespace
}  // namespace verbena::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  verbena::wire::check(input.subspan(1), (std::to_integer<unsigned>(input[0]) & 1) != 0);
  return 0;
}
