// Chooses the device and port for a destination: the one that the route leaves by, of all there are.
#pragma once

#include <cstdint>
#include <string>

#include "verbena/destination.h"
#include "verbena/device.h"
#include "verbena/export.h"
#include "verbena/gid_resolver.h"
#include "verbena/result.h"
#include "verbena/route.h"

namespace verbena {

struct PortChoice {
  Context context;
  std::uint8_t port = 0;
  SourceChoice source;      // zero for an InfiniBand destination by LID alone
  std::string explanation;  // one sentence for a person
};

// The port whose interface the kernel's route leaves by; where none has it, the first with a route by an interface of
// its own. A LID is looked for on InfiniBand ports only. Of the destination the place, source, netdev and port count.
// Errors: kUnreachable with the reason for each port that was left out; kNotFound where there is no device.
VERBENA_API Result<PortChoice> choose_port(const Destination& destination, const RouteLookup& routes = look_up_route);

}  // namespace verbena
