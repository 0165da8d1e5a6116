#include "cli/ping_report.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/figures.h"

namespace verbena::cli {
namespace {

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : many);
}

// ", 3 late" where there are any.
void append_count(std::string& line, std::uint64_t count, const char* what) {
  if (count > 0) line += fmt::format(", {} {}", format_count(count), what);
}

}  // namespace

double rate_of(std::uint64_t count, Duration elapsed) noexcept {
  if (elapsed.count() <= 0) return 0;
  return static_cast<double>(count) / std::chrono::duration<double>(elapsed).count();
}

std::string render_ping_heading(const PingReport& report) {
  const std::string port = report.has_more_ports ? fmt::format(" port {}", report.port) : "";
  const std::string netdev = report.netdev.empty() ? "" : fmt::format(" ({})", report.netdev);
  std::string text = fmt::format("ping {}: {} bytes, {} at a time, {}{}{} {} -> {}\n", report.server, report.size,
                                 report.window, report.device, port, netdev, report.source, report.destination);
  if (!report.explanation.empty()) text += fmt::format("source     {}\n", report.explanation);
  return text;
}

std::string render_ping_summary(const PingReport& report) {
  std::string counts = fmt::format("{} sent, {} received, {} lost ({})", format_count(report.counts.sent),
                                   format_count(report.counts.received), format_count(report.lost),
                                   format_percentage(report.lost, report.counts.sent));
  append_count(counts, report.counts.late, "late");
  append_count(counts, report.counts.duplicate, "duplicate");
  append_count(counts, report.counts.corrupt, "corrupt");
  append_count(counts, report.counts.unknown, "unknown");
  std::string text = fmt::format("datagrams  {}, in {}\n", counts, format_duration(report.elapsed));
  if (report.counts.unsent > 0) {
    text += fmt::format("unsent     {}\n", render_unsent(report.counts.unsent, report.unsent_why));
  }
  const LatencyDistribution& latency = report.latency;
  if (latency.count() > 0) {
    text += fmt::format("round trip min {}   p50 {}   p99 {}   p99.9 {}   max {}\n", format_duration(latency.min()),
                        format_duration(latency.percentile(50)), format_duration(latency.percentile(99)),
                        format_duration(latency.percentile(99.9)), format_duration(latency.max()));
  }
  text += fmt::format("rate       {} round trips\n", format_rate(rate_of(report.counts.received, report.elapsed)));
  text += fmt::format("directory  {}\n", render_directory(report.directory));
  if (!report.drops.empty()) text += fmt::format("dropped    here: {}\n", render_drop_counts(report.drops));
  if (!report.ended_by.empty()) text += fmt::format("ended      {}\n", report.ended_by);
  return text;
}

std::string render_drop_counts(const std::map<std::string, std::uint64_t>& drops) {
  std::string text;
  for (const auto& [name, count] : drops) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(count), name);
  }
  return text;
}

std::string render_unsent(std::uint64_t count, const std::string& why) {
  return fmt::format("{} not sent: no address handle ({})", format_count(count), why);
}

std::string render_directory(const AhStats& stats) {
  std::string text =
      fmt::format("{}, {}, {}", counted(stats.created, "address handle created", "address handles created"),
                  counted(stats.hits, "hit", "hits"), counted(stats.misses, "miss", "misses"));
  append_count(text, stats.replaced, "replaced");
  append_count(text, stats.failed, "failed");
  append_count(text, stats.refused, "refused");
  return text;
}

nlohmann::json latency_to_json(const LatencyDistribution& latency) {
  return {{"min", latency.min().count()},
          {"mean", latency.mean().count()},
          {"p50", latency.percentile(50).count()},
          {"p99", latency.percentile(99).count()},
          {"p999", latency.percentile(99.9).count()},
          {"max", latency.max().count()}};
}

nlohmann::json directory_to_json(const AhStats& stats) {
  return {{"created", stats.created}, {"destroyed", stats.destroyed}, {"live", stats.live},
          {"hits", stats.hits},       {"misses", stats.misses},       {"negative_hits", stats.negative_hits},
          {"failed", stats.failed},   {"replaced", stats.replaced},   {"stale", stats.stale},
          {"refused", stats.refused}};
}

nlohmann::json ping_to_json(const PingReport& report) {
  return {{"server", report.server},
          {"device", report.device},
          {"port", report.port},
          {"netdev", report.netdev},
          {"source", report.source},
          {"destination", report.destination},
          {"explanation", report.explanation},
          {"size", report.size},
          {"window", report.window},
          {"sent", report.counts.sent},
          {"received", report.counts.received},
          {"lost", report.lost},
          {"loss_percent", percentage(report.lost, report.counts.sent)},
          {"late", report.counts.late},
          {"duplicate", report.counts.duplicate},
          {"corrupt", report.counts.corrupt},
          {"unknown", report.counts.unknown},
          {"not_sent", report.counts.unsent},
          {"not_sent_why", report.unsent_why},
          {"elapsed_s", std::chrono::duration<double>(report.elapsed).count()},
          {"rate_per_s", rate_of(report.counts.received, report.elapsed)},
          {"round_trip_ns", latency_to_json(report.latency)},
          {"directory", directory_to_json(report.directory)},
          {"drops", report.drops},
          {"ended_by", report.ended_by}};
}

}  // namespace verbena::cli
