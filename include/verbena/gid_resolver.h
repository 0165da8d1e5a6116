// Chooses the source GID for a destination. Nobody configures a GID index.
//
// By order: family of the destination; interface of the route; RoCE v2 before v1; the address that the kernel would
// send from; scope as the destination's, then global, unique-local, link-local; lowest index. The explanation tells
// which of them decided.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "verbena/gid_table.h"
#include "verbena/route.h"

namespace verbena {

struct SourceQuery {
  Gid destination;
  std::uint8_t port = 0;     // 0: any
  std::uint32_t netdev = 0;  // interface index; 0: by route
  Gid source;                // not zero: this very address, or nothing
};

struct SourceChoice {
  GidEntry entry;
  Route route;              // zero where none was needed (multicast)
  std::string explanation;  // one sentence for a person
  std::string reason;       // the same without the destination: equal for many
};

// Pure but for `routes`, which it asks once or a few times.
// Errors: kInvalidArgument (zero destination), kUnreachable (no route, or by another interface; families that do not
// match), kNotFound (no usable GID), each saying what is there instead.
VERBENA_API Result<SourceChoice> choose_source(std::span<const GidEntry> table, const SourceQuery& query,
                                               const RouteLookup& routes);

}  // namespace verbena
