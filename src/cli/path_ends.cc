#include "cli/path_ends.h"

#include <cstdint>

#include <fmt/format.h>

namespace verbena::cli {
namespace {

std::string end_in_words(unsigned lid, const Gid& gid) {
  return gid.is_zero() ? fmt::format("LID {}", lid) : fmt::format("LID {} ({})", lid, to_string(gid));
}

}  // namespace

PathEnds path_ends(const EffectiveAddress& address, const PortView& port) {
  const Destination& destination = address.destination;
  if (port.link_layer == LinkLayer::kEthernet) return {to_string(address.source.gid), to_string(destination.gid)};
  const bool global = !destination.gid.is_zero();
  return {end_in_words(unsigned{port.lid} + destination.source_path_bits, global ? address.source.gid : Gid{}),
          end_in_words(destination.lid, destination.gid)};
}

}  // namespace verbena::cli
