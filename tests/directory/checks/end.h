// One end of a check: a domain, a directory and a queue pair on a device. Every send is in the ledger.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "check.h"
#include "directory/lane.h"
#include "ledger.h"

namespace verbena::on_device {

inline LaneOptions accounted() {
  LaneOptions options;
  options.posted = [](const ibv_ah* address) { Ledger::of_this_process().posted(address); };
  options.completed = [](const ibv_ah* address) { Ledger::of_this_process().completed(address); };
  return options;
}

inline Destination destination(const std::string& address, std::uint32_t flow_label = 0) {
  const auto gid = parse_gid(address);
  if (!gid) throw Broken("no address: '" + address + "'");
  Destination to;
  to.gid = *gid;
  to.flow_label = flow_label;
  return to;
}

// Calls `step` until it is true; false where that does not come about in time.
bool within(std::chrono::nanoseconds patience, const std::function<bool()>& step);

// Thread-safety: the directory's functions, any thread; all else by one thread.
// Ownership:     owns all it shows.
// Errors:        ends the check (Broken).
struct End {
  explicit End(const Context& context, AhDirectoryOptions options = {});
  // Closes all, and says what was left.
  void close(Findings& findings);

  ProtectionDomain domain;
  AhDirectory directory;
  std::unique_ptr<Lane> lane;
};

}  // namespace verbena::on_device
