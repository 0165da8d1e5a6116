// What the demo found out, for people and for programs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/instant.h"
#include "cli/latency_distribution.h"
#include "verbena/ah_report.h"

namespace verbena::cli {

// One way of getting at addresses: a handle made for each send, or the directory.
struct DemoWay {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t create_calls = 0;  // of ibv_create_ah
  Duration address_cost{0};        // mean time to get one address, and to give it back
  LatencyDistribution latency;     // round trips, one at a time
  double rate_alone = 0;           // round trips a second, one at a time
  double rate_window = 0;          // with a window under way
};

struct DemoReport {
  int pid = 0;
  int responder_pid = 0;
  std::string device;
  std::string netdev;
  std::string source;
  std::string destination;
  std::string explanation;
  std::size_t size = 0;
  std::size_t destinations = 0;
  std::size_t window = 0;
  DemoWay create_per_send;
  DemoWay directory;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  AhStats stats;
};

// `color`: bold and green, for a terminal.
std::string render_demo(const DemoReport& report, bool color);
nlohmann::json demo_to_json(const DemoReport& report);

}  // namespace verbena::cli
