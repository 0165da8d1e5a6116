// One visit to the doctor: gathers the facts, of this host and of the way to a peer, and has them judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/port_name.h"
#include "verbena/gid.h"
#include "verbena/preflight.h"
#include "verbena/result.h"

namespace verbena::cli {

struct ExaminationOptions {
  std::string peer{};          // name or address, with %interface where it is link-local; empty: this host only
  PortName port{};             // of no device: every one; towards a peer the one that the route leaves by
  std::uint16_t tcp_port = 0;  // of the server
  bool probe = true;           // look for a server
  std::optional<Gid> dgid{};   // instead of the peer's own
  std::uint16_t dlid = 0;
  bool names_dlid = false;  // `dlid` is meant, be it 0; else the peer's own where a server tells it
  std::uint8_t hop_limit = 64;
  std::uint8_t static_rate = 0;
  std::uint8_t traffic_class = 0;
  std::optional<std::uint32_t> qkey{};
  std::optional<std::uint64_t> peers{};
};

// Errors: where the port is not there. What else goes wrong is a finding.
Result<std::vector<Finding>> examine(const ExaminationOptions& options);

}  // namespace verbena::cli
