// The demo's measurements: the same datagrams to the same destinations, once with an address handle made for each send,
// as simple programs do, and once through the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/child_process.h"
#include "cli/demo_report.h"
#include "cli/port_name.h"
#include "verbena/result.h"

namespace verbena::cli {

struct DemoPlan {
  PortName port;  // of no device: by route
  std::size_t destinations = 16;
  std::uint64_t count = 20000;  // datagrams of each measurement, at most
  std::size_t size = 64;
  bool progress = true;
};

// The arguments with which the responder is started (demo_responder.cc).
std::vector<std::string> responder_arguments(const DemoPlan& plan);

// Requires: `responder` was started with responder_arguments(plan).
Result<DemoReport> run_demo(ChildProcess& responder, const DemoPlan& plan);

}  // namespace verbena::cli
