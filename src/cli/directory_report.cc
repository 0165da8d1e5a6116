#include "cli/directory_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/drop_report.h"
#include "cli/text_table.h"

namespace verbena::cli {
namespace {

constexpr std::string_view kBucket = "creation_us_below_";
constexpr std::string_view kLastBucket = "creation_us_from_";

// What is there now, and what happened: the columns of `top`.
constexpr std::array<std::string_view, 7> kStates{"live",    "ready",   "pending",  "negative",
                                                  "retired", "handles", "in_flight"};
constexpr std::array<std::string_view, 7> kEvents{"hits",  "misses",   "created", "failed",
                                                  "stale", "replaced", "refused"};

std::uint64_t value_of(const host::CounterBlockReading& block, std::string_view name) {
  const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                [name](const host::CounterReading& one) { return one.name == name; });
  return row == block.rows.end() ? 0 : row->value;
}

const host::CounterBlockReading* same_block(const DirectorySurvey& survey, const DirectoryProcess& process,
                                            const host::CounterBlockReading& block) {
  for (const DirectoryProcess& other : survey.processes) {
    if (other.pid != process.pid || other.page.start_time_ns != process.page.start_time_ns) continue;
    for (const host::CounterBlockReading& one : other.page.blocks) {
      if (one.name == block.name) return &one;
    }
  }
  return nullptr;
}

std::string rate(std::uint64_t now, std::uint64_t before, Duration interval) {
  const double seconds = std::max(1e-9, std::chrono::duration<double>(interval).count());
  return fmt::format("{:.0f}", static_cast<double>(now - std::min(now, before)) / seconds);
}

std::string micros(const std::optional<std::uint64_t>& value) {
  if (!value) return "-";
  return *value < 1000 ? fmt::format("<{} us", *value) : fmt::format("<{:.3g} ms", static_cast<double>(*value) / 1000);
}

std::vector<Column> count_columns(bool rates) {
  std::vector<Column> columns{{"directory", Align::kLeft}};
  for (const std::string_view name : kStates) columns.push_back({std::string(name), Align::kRight});
  for (const std::string_view name : kEvents) {
    columns.push_back({rates ? std::string(name) + "/s" : std::string(name), Align::kRight});
  }
  columns.push_back({"create p50", Align::kRight});
  columns.push_back({"p99", Align::kRight});
  return columns;
}

// A tenant is shown as a directory is, with its budget.
bool is_tenant(const host::CounterBlockReading& block) {
  return std::any_of(block.rows.begin(), block.rows.end(),
                     [](const host::CounterReading& row) { return row.name == "tenant_share"; });
}

std::string shown_name(const host::CounterBlockReading& block) {
  return printable(block.name) + (block.ended ? " (ended)" : "");
}

std::string limited(std::uint64_t value, std::uint64_t limit) {
  return limit == 0 ? std::to_string(value) : fmt::format("{} of {}", value, limit);
}

std::string tenants_of(const DirectoryProcess& process) {
  TextTable table({{"tenant", Align::kLeft},
                   {"directories", Align::kRight},
                   {"handles", Align::kRight},
                   {"share", Align::kRight},
                   {"bytes", Align::kRight},
                   {"creations/s at most", Align::kRight},
                   {"created", Align::kRight},
                   {"paced", Align::kRight},
                   {"refused", Align::kRight},
                   {"taken for others", Align::kRight}});
  for (const host::CounterBlockReading& block : process.page.blocks) {
    if (!is_tenant(block)) continue;
    const auto count = [&block](std::string_view name) { return value_of(block, name); };
    const std::uint64_t pace = count("tenant_creations_limit");
    table.add_row({shown_name(block), std::to_string(count("tenant_directories")),
                   limited(count("live"), count("tenant_handles_limit")), std::to_string(count("tenant_share")),
                   limited(count("tenant_memory"), count("tenant_memory_limit")),
                   pace == 0 ? "-" : std::to_string(pace), std::to_string(count("created")),
                   std::to_string(count("paced")), std::to_string(count("refused")),
                   std::to_string(count("reclaimed_share"))});
  }
  return table.empty() ? "" : table.render(2);
}

std::string head_of(const DirectoryProcess& process) {
  return fmt::format("{} (pid {})\n", printable(process.page.process_name), process.pid);
}

std::string silence(const DirectorySurvey& survey) {
  std::string text;
  for (const SilentDirectories& one : survey.silent) text += fmt::format("pid {}: {}\n", one.pid, one.reason);
  if (survey.processes.empty() && survey.silent.empty()) {
    text = "No process of this network namespace shows an address-handle directory.\n";
  }
  return text;
}

std::string render(const DirectorySurvey& survey, const DirectorySurvey* earlier, Duration interval) {
  std::string text;
  for (const DirectoryProcess& process : survey.processes) {
    TextTable table(count_columns(earlier != nullptr));
    for (const host::CounterBlockReading& block : process.page.blocks) {
      if (is_tenant(block)) continue;
      std::vector<std::string> words{shown_name(block)};
      for (const std::string_view name : kStates) words.push_back(std::to_string(value_of(block, name)));
      const auto* before = earlier != nullptr ? same_block(*earlier, process, block) : nullptr;
      for (const std::string_view name : kEvents) {
        const std::uint64_t value = value_of(block, name);
        words.push_back(earlier == nullptr ? std::to_string(value)
                                           : rate(value, before != nullptr ? value_of(*before, name) : 0, interval));
      }
      words.push_back(micros(creation_us_at(block, 0.5)));
      words.push_back(micros(creation_us_at(block, 0.99)));
      table.add_row(std::move(words));
    }
    text += head_of(process) + table.render(2) + tenants_of(process);
  }
  return text + silence(survey);
}

}  // namespace

std::optional<std::uint64_t> creation_us_at(const host::CounterBlockReading& block, double share) {
  std::uint64_t all = 0;
  for (const host::CounterReading& row : block.rows) {
    if (row.name.starts_with(kBucket) || row.name.starts_with(kLastBucket)) all += row.value;
  }
  if (all == 0) return std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all)));
  std::uint64_t seen = 0;
  std::uint64_t end = 0;
  for (const host::CounterReading& row : block.rows) {
    const std::string_view name = row.name;
    const std::string_view prefix = name.starts_with(kBucket) ? kBucket : kLastBucket;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), end);
    seen += row.value;
    if (seen >= wanted) return end;
  }
  return end;
}

std::string render_directories(const DirectorySurvey& survey) {
  return render(survey, nullptr, Duration{1});
}

std::string render_directories(const DirectorySurvey& survey, const DirectorySurvey& earlier, Duration interval) {
  return render(survey, &earlier, interval);
}

std::string render_entries(const DirectorySurvey& survey) {
  constexpr std::array<std::pair<std::string_view, Align>, 14> kShown{{{"directory", Align::kLeft},
                                                                       {"destination", Align::kLeft},
                                                                       {"state", Align::kLeft},
                                                                       {"source", Align::kLeft},
                                                                       {"handles", Align::kRight},
                                                                       {"leases", Align::kRight},
                                                                       {"in_flight", Align::kRight},
                                                                       {"age_ms", Align::kRight},
                                                                       {"held_ms", Align::kRight},
                                                                       {"held_at", Align::kLeft},
                                                                       {"next_hop", Align::kLeft},
                                                                       {"mac", Align::kLeft},
                                                                       {"cause", Align::kLeft},
                                                                       {"last_error", Align::kLeft}}};
  std::string text;
  for (const DirectoryProcess& process : survey.processes) {
    std::vector<Column> columns;
    for (const auto& [name, align] : kShown) columns.push_back({std::string(name), align});
    TextTable table(std::move(columns));
    for (const DirectoryEntry& entry : process.entries) {
      std::vector<std::string> words;
      for (const auto& [name, align] : kShown) {
        const auto word = entry.find(std::string(name));
        words.push_back(word == entry.end() ? "" : printable(word->second));
      }
      table.add_row(std::move(words));
    }
    text += head_of(process) + (table.empty() ? "  no entries\n" : table.render(2));
  }
  return text + silence(survey);
}

nlohmann::json directories_to_json(const DirectorySurvey& survey, Ask what) {
  nlohmann::json json{{"processes", nlohmann::json::array()}, {"silent", nlohmann::json::array()}};
  for (const DirectoryProcess& process : survey.processes) {
    nlohmann::json directories = nlohmann::json::array();
    nlohmann::json tenants = nlohmann::json::array();
    for (const host::CounterBlockReading& block : process.page.blocks) {
      nlohmann::json counts = nlohmann::json::object();
      for (const host::CounterReading& row : block.rows) counts[row.name] = row.value;
      const char* const kind = is_tenant(block) ? "tenant" : "directory";
      (is_tenant(block) ? tenants : directories)
          .push_back({{kind, block.name}, {"ended", block.ended}, {"counts", std::move(counts)}});
    }
    nlohmann::json one{{"pid", process.pid},
                       {"process", process.page.process_name},
                       {"started_ns", process.page.start_time_ns},
                       {"directories", std::move(directories)},
                       {"tenants", std::move(tenants)}};
    if (what == Ask::kEntries) one["entries"] = process.entries;
    json["processes"].push_back(std::move(one));
  }
  for (const SilentDirectories& silent : survey.silent) {
    json["silent"].push_back({{"pid", silent.pid}, {"reason", silent.reason}});
  }
  return json;
}

}  // namespace verbena::cli
