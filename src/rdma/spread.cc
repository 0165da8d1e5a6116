// One destination by many paths (annex A17: a flow label becomes a UDP source port, which equal-cost routing hashes).
#include <fmt/format.h>

#include "verbena/resolve.h"

namespace verbena {

namespace {

constexpr std::uint32_t kPortBits = 14;
constexpr std::uint32_t kPortCount = 1U << kPortBits;
constexpr std::uint32_t kFirstPort = 0xc000;
constexpr std::uint32_t kHighBits = 6;  // of a flow label, above those that are the port
// The golden ratio of the range, and odd: multiples of it meet every port once, and lie evenly at any count.
constexpr std::uint32_t kStride = 10125;

// A label of that port: the six bits above are folded into it, so they are free. Never 0.
std::uint32_t label_for(std::uint32_t port, std::uint32_t high) {
  if (port == 0 && high == 0) high = 1;
  return (high << kPortBits) | (port ^ high);
}

}  // namespace

std::uint16_t udp_source_port(std::uint32_t flow_label) noexcept {
  const std::uint32_t low = flow_label & (kPortCount - 1);
  const std::uint32_t high = (flow_label >> kPortBits) & ((1U << kHighBits) - 1);
  return static_cast<std::uint16_t>(kFirstPort | (low ^ high));
}

Result<std::vector<Destination>> spread(const Destination& destination, std::size_t paths, std::uint64_t flow_hash) {
  if (paths == 0 || paths > kPortCount) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("{} paths to {}: a destination can be spread over 1 to {}",
                                                            paths, to_string(destination.gid), kPortCount));
  }
  const std::uint64_t mixed = flow_hash * 0x9e3779b97f4a7c15ULL;
  const auto first = static_cast<std::uint32_t>(mixed >> (64 - kPortBits));
  std::vector<Destination> all(paths, destination);
  for (std::size_t i = 0; i < paths; ++i) {
    const auto step = static_cast<std::uint32_t>(i);
    const std::uint32_t port = (first + step * kStride) & (kPortCount - 1);
    all[i].flow_label = label_for(port, (first + step) & ((1U << kHighBits) - 1));
  }
  return all;
}

}  // namespace verbena
