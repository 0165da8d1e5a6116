#include "cli/demo_report.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/figures.h"
#include "cli/ping_report.h"

namespace verbena::cli {
namespace {

struct Row {
  std::string what;
  std::string create_per_send;
  std::string directory;
  std::string verdict;
};

std::string paint(std::string text, std::string_view code, bool color) {
  return color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

// How `to` compares with `from`: "158 x less"; in percent where the two are close.
std::string compare(double from, double to, std::string_view up, std::string_view down) {
  if (from <= 0 || to <= 0) return "";
  const std::string_view word = to > from ? up : down;
  const double factor = to > from ? to / from : from / to;
  if (factor < 1.005) return "the same";
  if (factor < 1.995) return fmt::format("{:.0f}% {}", 100 * std::abs(to / from - 1), word);
  return factor < 9.95 ? fmt::format("{:.1f} x {}", factor, word) : fmt::format("{:.0f} x {}", factor, word);
}

Row duration_row(std::string what, Duration create_per_send, Duration directory) {
  return {
      std::move(what), format_duration(create_per_send), format_duration(directory),
      compare(static_cast<double>(create_per_send.count()), static_cast<double>(directory.count()), "more", "less")};
}

Row rate_row(std::string what, double create_per_send, double directory) {
  return {std::move(what), format_rate(create_per_send), format_rate(directory),
          compare(create_per_send, directory, "more", "fewer")};
}

std::vector<Row> rows_of(const DemoReport& report) {
  const DemoWay& naive = report.create_per_send;
  const DemoWay& managed = report.directory;
  return {
      {"datagrams sent", format_count(naive.sent), format_count(managed.sent), ""},
      {"ibv_create_ah calls", format_count(naive.create_calls), format_count(managed.create_calls),
       compare(static_cast<double>(naive.create_calls), static_cast<double>(managed.create_calls), "more", "fewer")},
      duration_row("to get and give back an address", naive.address_cost, managed.address_cost),
      duration_row("round trip, median", naive.latency.percentile(50), managed.latency.percentile(50)),
      duration_row("round trip, 99th percentile", naive.latency.percentile(99), managed.latency.percentile(99)),
      rate_row("round trips, one at a time", naive.rate_alone, managed.rate_alone),
      rate_row(fmt::format("round trips, {} under way", report.window), naive.rate_window, managed.rate_window),
      {"lost", format_count(naive.lost), format_count(managed.lost), ""},
  };
}

std::string render_rows(const DemoReport& report, bool color) {
  std::string text = paint(fmt::format("  {:<34}{:>18}{:>18}\n", "", "a handle a send", "the directory"), "1", color);
  for (const Row& row : rows_of(report)) {
    const std::string managed = paint(fmt::format("{:>18}", row.directory), "32", color);
    std::string line = fmt::format("  {:<34}{:>18}{}   {}", row.what, row.create_per_send, managed, row.verdict);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string render_heading(const DemoReport& report, bool color) {
  const std::string netdev = report.netdev.empty() ? "" : fmt::format(" on {}", report.netdev);
  return paint("Verbena: two processes exchange datagrams through managed address handles\n\n", "1", color) +
         fmt::format("  device        {}{}\n", report.device, netdev) +
         fmt::format("  processes     {} sends, {} answers\n", report.pid, report.responder_pid) +
         fmt::format("  path          {} -> {}, {} bytes of payload\n", report.source, report.destination,
                     report.size) +
         fmt::format("  destinations  {}, in turn: each its own queue pair, flow label and address handle\n",
                     report.destinations) +
         (report.explanation.empty() ? "" : fmt::format("  source GID    {}\n", report.explanation)) + "\n";
}

std::string render_directory_paragraph(const DemoReport& report) {
  return fmt::format(
      "  The directory made {} for {} and answered {} of {} look-ups from memory ({}),\n"
      "  without a lock or a system call; {} had to wait.\n"
      "  On this software device a handle is cheap to make: no hardware and no neighbour is asked. A RoCE card needs "
      "the\n"
      "  destination's MAC address: microseconds when the kernel knows it, 1 to 3 seconds when it does not.\n",
      format_count(report.directory.create_calls) + (report.directory.create_calls == 1 ? " handle" : " handles"),
      format_count(report.destinations) + (report.destinations == 1 ? " destination" : " destinations"),
      format_count(report.hits), format_count(report.hits + report.misses),
      format_percentage(report.hits, report.hits + report.misses), format_count(report.misses));
}

constexpr const char* kNext =
    "  verbena run -- ibv_devinfo                      any verbs program on the software RNIC\n"
    "  verbena ping --listen & verbena ping 127.0.0.1  the same between two hosts: loss, latency, rate\n"
    "  verbena ping 127.0.0.1 --impair loss=5%,seed=7  a bad network, the same one each time (listener running)\n"
    "  verbena drops --watch                           where datagrams vanish, while programs run\n"
    "  verbena --help                                  the rest\n";

nlohmann::json way_to_json(const DemoWay& way) {
  return {{"sent", way.sent},
          {"lost", way.lost},
          {"create_ah_calls", way.create_calls},
          {"address_cost_ns", way.address_cost.count()},
          {"round_trip_ns", latency_to_json(way.latency)},
          {"rate_per_s", way.rate_alone},
          {"rate_window_per_s", way.rate_window}};
}

}  // namespace

std::string render_demo(const DemoReport& report, bool color) {
  return render_heading(report, color) + render_rows(report, color) + "\n" + render_directory_paragraph(report) + "\n" +
         paint("Try next\n", "1", color) + kNext;
}

nlohmann::json demo_to_json(const DemoReport& report) {
  auto directory = directory_to_json(report.stats);
  directory["hits"] = report.hits;
  directory["misses"] = report.misses;
  return {{"device", report.device},
          {"netdev", report.netdev},
          {"source", report.source},
          {"destination", report.destination},
          {"explanation", report.explanation},
          {"size", report.size},
          {"destinations", report.destinations},
          {"window", report.window},
          {"pid", report.pid},
          {"responder_pid", report.responder_pid},
          {"create_per_send", way_to_json(report.create_per_send)},
          {"through_directory", way_to_json(report.directory)},
          {"directory", std::move(directory)}};
}

}  // namespace verbena::cli
