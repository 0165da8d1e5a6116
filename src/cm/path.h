// Between which two addresses the messages of a connection go.
#pragma once

#include <cstdint>

#include "verbena/gid.h"

namespace verbena::cm {

struct Path {
  Gid local;
  Gid remote;
  std::uint8_t traffic_class = 0;

  friend bool operator==(const Path&, const Path&) = default;
};

}  // namespace verbena::cm
