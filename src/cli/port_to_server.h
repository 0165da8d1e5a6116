// The port of this host that leads to a server, by a look at GID tables and routes: no address handle is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/port_name.h"
#include "cli/session_hello.h"
#include "verbena/gid_table.h"
#include "verbena/result.h"
#include "verbena/route.h"

namespace verbena::cli {

// A port of this host that may lead to the server.
struct PortCandidate {
  PortName name{};
  bool infiniband = false;
  std::vector<GidEntry> table{};  // of the whole device
};

// Of the server's GIDs, best first, the first that a candidate leads to; of the candidates the one whose source the
// kernel's route to it leaves from, else the first that has a way of its own. An InfiniBand port addresses by LID, and
// is taken as it comes. `netdev`: the interface of link-local GIDs; 0: any.
// Errors: why the best GID cannot be reached. Requires: at least one candidate. Pure but for `routes`.
Result<PortName> pick_port(const std::vector<PortCandidate>& candidates, const std::vector<Gid>& server,
                           std::uint32_t netdev, const RouteLookup& routes);

// The same among all active ports of this host that `wanted` names and that speak the server's link layer.
// Errors: as above; where there is no candidate why the last port was left out; kNotFound where there is no device.
Result<PortName> choose_port_to(const SessionHello& server, const PortName& wanted, std::uint32_t netdev);

}  // namespace verbena::cli
