// What a ping found out, for people and for programs. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/latency_distribution.h"
#include "cli/round_trips.h"
#include "verbena/ah_report.h"

namespace verbena::cli {

struct PingReport {
  std::string server{};  // as the user named it
  std::string device{};  // this end's
  unsigned port = 1;     // of the device
  bool has_more_ports = false;
  std::string netdev{};  // "" where unknown
  std::string source{};  // as in path_ends.h
  std::string destination{};
  std::string explanation{};  // why this source
  std::size_t size = 0;
  std::size_t window = 0;
  std::string unsent_why{};
  std::string ended_by{};
  bool cut_short = false;
  PingCounts counts{};
  std::uint64_t lost = 0;
  LatencyDistribution latency{};
  Duration elapsed{0};
  AhStats directory{};
  std::map<std::string, std::uint64_t> drops{};  // of this process, by name; those that are not zero
};

// "ping node7: 64 bytes, 1 at a time, verbena0 (eth0) ::ffff:10.0.0.1 -> ::ffff:10.0.0.7" and a line why; the port
// behind the device where that has several.
std::string render_ping_heading(const PingReport& report);
// Counts, round trips, rate, directory.
std::string render_ping_summary(const PingReport& report);

nlohmann::json ping_to_json(const PingReport& report);

// {"min", "mean", "p50", "p99", "p999", "max"}, in nanoseconds.
nlohmann::json latency_to_json(const LatencyDistribution& latency);
// The counts of a directory that say what it did.
nlohmann::json directory_to_json(const AhStats& stats);
// "3 no_receive_request, 14 impair_loss".
std::string render_drop_counts(const std::map<std::string, std::uint64_t>& drops);
// "10 not sent: no address handle (why)".
std::string render_unsent(std::uint64_t count, const std::string& why);
// "1 address handle created, 1,000 hits, 1 miss, 1 live".
std::string render_directory(const AhStats& stats);

// Per second; 0 where no time has passed.
double rate_of(std::uint64_t count, Duration elapsed) noexcept;

}  // namespace verbena::cli
