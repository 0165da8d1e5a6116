// The text of a destination, taken apart: what both parse_destination() and resolve_destination() start with.
#pragma once

#include <string>
#include <string_view>

#include "verbena/destination.h"
#include "verbena/result.h"

namespace verbena::rdma {

struct DestinationText {
  Destination destination;
  std::string host_name;  // empty where the place was an address or a LID; else destination.gid is still to be filled
};

Result<DestinationText> read_destination(std::string_view text);

}  // namespace verbena::rdma
