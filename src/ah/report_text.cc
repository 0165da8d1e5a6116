#include "ah/report_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

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

namespace {

struct BudgetRow {
  CounterRow row;
  std::uint64_t TenantBudget::*value;
};

constexpr std::array kBudgetRows{
    BudgetRow{
        {"tenant_handles_limit", "handles", Side::kBoth, "Address handles that the tenant may have; 0: no limit."},
        &TenantBudget::handles_limit},
    BudgetRow{{"tenant_share", "handles", Side::kBoth, "Of the device's, beyond which others take back what is idle."},
              &TenantBudget::share},
    BudgetRow{{"tenant_memory", "bytes", Side::kBoth, "Of destinations, address handles and senders."},
              &TenantBudget::memory},
    BudgetRow{{"tenant_memory_limit", "bytes", Side::kBoth, "Memory that the tenant may have; 0: no limit."},
              &TenantBudget::memory_limit},
    BudgetRow{{"tenant_creations_limit", "per_second", Side::kBoth, "Creations in a second; 0: no limit."},
              &TenantBudget::creations_limit}};

constexpr CounterRow kDirectories{"tenant_directories", "directories", Side::kBoth, "Directories that are open."};

bool is_event(const AhStatRow& row) noexcept {
  return std::string_view(row.unit) == "events";
}

}  // namespace

std::span<const CounterRow> tenant_rows() {
  static const auto& rows = *new std::vector<CounterRow>([] {
    std::vector<CounterRow> made;
    for (const BudgetRow& one : kBudgetRows) made.push_back(one.row);
    made.push_back(kDirectories);
    made.insert(made.end(), report_rows().begin(), report_rows().end());
    return made;
  }());
  return rows;
}

std::vector<std::uint64_t> tenant_values(const TenantBudget& budget, const DirectorySum& sum) {
  std::vector<std::uint64_t> values;
  for (const BudgetRow& one : kBudgetRows) values.push_back(budget.*one.value);
  values.push_back(sum.directories);
  const std::vector<std::uint64_t> counts = report_values(sum.stats);
  values.insert(values.end(), counts.begin(), counts.end());
  return values;
}

void add_events(AhStats& sum, const AhStats& more) {
  for (const AhStatRow& row : ah_stat_rows()) {
    if (is_event(row)) sum.*row.value += more.*row.value;
  }
  for (std::size_t bucket = 0; bucket < sum.creation_us.size(); ++bucket) {
    sum.creation_us[bucket] += more.creation_us[bucket];
  }
}

void add_all(AhStats& sum, const AhStats& more) {
  add_events(sum, more);
  const std::uint64_t oldest_ms = std::max(sum.oldest_ms, more.oldest_ms);
  for (const AhStatRow& row : ah_stat_rows()) {
    if (!is_event(row)) sum.*row.value += more.*row.value;
  }
  sum.oldest_ms = oldest_ms;
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
