// Waits for clients on a TCP port and answers their datagrams: `verbena ping --listen` and `verbena doctor --serve`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/port_name.h"

namespace verbena::cli {

inline constexpr std::uint16_t kPingPort = 18519;
inline constexpr int kMostTcpPort = 65535;
inline constexpr std::size_t kMaxPingWindow = 1024;  // datagrams of a client under way at once

struct PingListenOptions {
  PortName port_name{};            // of no device: every port that can be used; of no number: all of the device
  std::uint16_t port = kPingPort;  // 0: any free one
  bool once = false;               // end when the last client has left
  bool json = false;               // announce on stderr: of clients nothing is told in JSON
};

// Until a stop signal; prints a line for itself, and for each client that comes and goes. Returns the exit code, and
// says what went wrong as `subcommand`.
int serve_pings(std::string_view subcommand, const PingListenOptions& options);

}  // namespace verbena::cli
