#include "ah/report_text.h"

#include <array>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ah/attributes.h"

namespace verbena::ah {
namespace {

constexpr std::array kColumns{"directory", "destination", "state",     "source", "source_type", "index",
                              "handles",   "leases",      "in_flight", "age_ms", "failures",    "last_error",
                              "held_ms",   "held_at",     "next_hop",  "mac",    "cause"};

std::string as_word(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return word;
}

std::string milliseconds(std::chrono::nanoseconds span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

std::string in_words(const CallSite& place) {
  return fmt::format("{}:{} {}", place.file_name(), place.line(), place.function_name());
}

const std::vector<std::string>& bucket_names() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> made;
    const std::size_t last = LatencyHistogram{}.size() - 1;
    for (std::size_t i = 0; i < last; ++i) made.push_back(fmt::format("creation_us_below_{}", std::uint64_t{2} << i));
    made.push_back(fmt::format("creation_us_from_{}", std::uint64_t{1} << last));
    return made;
  }());
  return names;
}

}  // namespace

std::span<const CounterRow> report_rows() {
  static const auto& rows = *new std::vector<CounterRow>([] {
    std::vector<CounterRow> made;
    for (const AhStatRow& row : ah_stat_rows()) made.push_back({row.name, row.unit, Side::kBoth, row.doc});
    for (const std::string& name : bucket_names()) {
      made.push_back({name, "events", Side::kBoth, "Creations that took so long."});
    }
    return made;
  }());
  return rows;
}

std::vector<std::uint64_t> report_values(const AhStats& stats) {
  std::vector<std::uint64_t> values;
  for (const AhStatRow& row : ah_stat_rows()) values.push_back(stats.*row.value);
  values.insert(values.end(), stats.creation_us.begin(), stats.creation_us.end());
  return values;
}

std::string dump_head() {
  return fmt::format("{}\n", fmt::join(kColumns, "\t"));
}

std::string dump_line(std::string_view directory, const AhRow& row) {
  const bool has_source = !row.source.gid.is_zero();
  const bool is_held = row.held_at.line() != 0;
  const std::array<std::string, kColumns.size()> words{as_word(directory),
                                                       as_word(in_words(row.destination)),
                                                       to_string(row.state),
                                                       has_source ? to_string(row.source.gid) : "",
                                                       has_source ? to_string(row.source.type) : "",
                                                       has_source ? std::to_string(row.source.index) : "",
                                                       std::to_string(row.handles),
                                                       std::to_string(row.leases),
                                                       row.in_flight ? "1" : "0",
                                                       milliseconds(row.age),
                                                       std::to_string(row.failures),
                                                       as_word(row.last_error),
                                                       is_held ? milliseconds(row.held) : "",
                                                       is_held ? as_word(in_words(row.held_at)) : "",
                                                       row.next_hop.is_zero() ? "" : to_string(row.next_hop),
                                                       row.mac ? fmt::format("{:02x}", fmt::join(*row.mac, ":")) : "",
                                                       row.cause == AhCause::kNone ? "" : to_string(row.cause)};
  return fmt::format("{}\n", fmt::join(words, "\t"));
}

}  // namespace verbena::ah
