// The two ends of a path in words: GIDs on Ethernet, LIDs on InfiniBand. Pure.
#pragma once

#include <string>

#include "verbena/ah_report.h"
#include "verbena/device.h"

namespace verbena::cli {

struct PathEnds {
  std::string source;       // "::ffff:10.0.0.1", "LID 4", "LID 4 (fe80::1)" where there is a GRH
  std::string destination;  // likewise
};

// `port` is the local one.
PathEnds path_ends(const EffectiveAddress& address, const PortView& port);

}  // namespace verbena::cli
