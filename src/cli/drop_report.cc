#include "cli/drop_report.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/figures.h"
#include "cli/text_table.h"

namespace verbena::cli {
namespace {

// The survey before this one, where there is one, to tell rates.
struct Earlier {
  const CounterSurvey* survey = nullptr;
  Duration interval{0};
};

const host::CounterBlockReading* find_block(const ProcessCounters& process, std::string_view name) {
  for (const auto& block : process.page.blocks) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

std::optional<std::uint64_t> earlier_value(const Earlier& earlier, const ProcessCounters& process,
                                           std::string_view block_name, std::string_view row_name) {
  if (earlier.survey == nullptr) return std::nullopt;
  for (const ProcessCounters& known : earlier.survey->processes) {
    if (known.pid != process.pid || known.page.start_time_ns != process.page.start_time_ns) continue;
    const auto* block = find_block(known, block_name);
    if (block == nullptr) return std::nullopt;
    for (const auto& row : block->rows) {
      if (row.name == row_name) return row.value;
    }
  }
  return std::nullopt;
}

std::string rate_word(std::optional<std::uint64_t> before, std::uint64_t value, Duration interval) {
  if (!before || interval.count() <= 0) return "";
  if (value < *before) return "";  // a gauge that fell
  return format_rate(static_cast<double>(value - *before) / std::chrono::duration<double>(interval).count());
}

std::vector<Column> columns_for(bool drops, bool with_rate) {
  std::vector<Column> columns{{drops ? "DROPPED" : "COUNTER", Align::kLeft}, {"COUNT", Align::kRight}};
  if (with_rate) columns.push_back({"RATE", Align::kRight});
  columns.push_back({"UNIT", Align::kLeft});
  columns.push_back({"AT", Align::kLeft});
  if (drops) columns.push_back({"MEANING", Align::kLeft});
  return columns;
}

std::string render_rows(const ProcessCounters& process, const host::CounterBlockReading& block, bool drops, bool all,
                        const Earlier& earlier) {
  TextTable table(columns_for(drops, earlier.survey != nullptr));
  for (const auto& row : block.rows) {
    const CounterRow* drop = find_drop(row.name);
    if ((drop != nullptr) != drops || (row.value == 0 && !all)) continue;
    std::vector<std::string> words{printable(row.name), format_count(row.value)};
    if (earlier.survey != nullptr) {
      words.push_back(rate_word(earlier_value(earlier, process, block.name, row.name), row.value, earlier.interval));
    }
    words.push_back(printable(row.unit));
    words.emplace_back(side_word(row.side));
    if (drop != nullptr) words.emplace_back(drop->doc);
    table.add_row(std::move(words));
  }
  return table.empty() ? std::string() : table.render(4);
}

std::string render_block(const ProcessCounters& process, const host::CounterBlockReading& block, bool all,
                         const Earlier& earlier) {
  const std::string drops = render_rows(process, block, true, all, earlier);
  const std::string counters = render_rows(process, block, false, all, earlier);
  std::string text = fmt::format("  {}\n", printable(block.name));
  if (drops.empty() && counters.empty()) return text + "    nothing counted yet\n";
  const bool has_drops =
      std::any_of(block.rows.begin(), block.rows.end(), [](const auto& row) { return find_drop(row.name) != nullptr; });
  if (drops.empty() && has_drops) text += "    nothing dropped\n";
  return text + drops + counters;
}

std::string render_process(const ProcessCounters& process, const ReportStyle& style, const Earlier& earlier) {
  const Duration age(std::max<std::int64_t>(style.time_ns - process.page.start_time_ns, 0));
  std::string text = fmt::format("{} (pid {}, running for {})\n", printable(process.page.process_name), process.pid,
                                 format_duration(age));
  if (process.page.blocks.empty()) text += "  no device open\n";
  for (const auto& block : process.page.blocks) text += render_block(process, block, style.all, earlier);
  return text;
}

std::string render(const CounterSurvey& survey, const ReportStyle& style, const Earlier& earlier) {
  std::string text;
  for (const ProcessCounters& process : survey.processes) {
    if (!text.empty()) text += '\n';
    text += render_process(process, style, earlier);
  }
  if (!survey.silent.empty() && !text.empty()) text += '\n';
  for (const SilentProcess& silent : survey.silent) {
    const std::string who = silent.pid == 0 ? "a process" : fmt::format("pid {}", silent.pid);
    text += fmt::format("slot {} ({}) gave no counters: {}\n", silent.slot.value(), who, printable(silent.reason));
  }
  if (text.empty()) text = "No process in this network namespace uses the software RNIC.\n";
  return text;
}

nlohmann::json block_to_json(const host::CounterBlockReading& block) {
  auto drops = nlohmann::json::object();
  auto counters = nlohmann::json::object();
  for (const auto& row : block.rows) (find_drop(row.name) != nullptr ? drops : counters)[row.name] = row.value;
  return {{"device", block.name}, {"drops", std::move(drops)}, {"counters", std::move(counters)}};
}

}  // namespace

const CounterRow* find_drop(std::string_view name) noexcept {
  for (std::size_t i = 1; i < kDropRows.size(); ++i) {  // 0 is "not a drop"
    if (kDropRows[i].name == name) return &kDropRows[i];
  }
  return nullptr;
}

std::string render_drops(const CounterSurvey& survey, const ReportStyle& style) {
  return render(survey, style, {});
}

std::string render_drops(const CounterSurvey& survey, const ReportStyle& style, const CounterSurvey& earlier,
                         Duration interval) {
  return render(survey, style, {&earlier, interval});
}

nlohmann::json drops_to_json(const CounterSurvey& survey) {
  auto processes = nlohmann::json::array();
  for (const ProcessCounters& process : survey.processes) {
    auto slots = nlohmann::json::array();
    for (const Slot slot : process.slots) slots.push_back(slot.value());
    auto devices = nlohmann::json::array();
    for (const auto& block : process.page.blocks) devices.push_back(block_to_json(block));
    processes.push_back({{"pid", process.pid},
                         {"process", process.page.process_name},
                         {"slots", std::move(slots)},
                         {"started_ns", process.page.start_time_ns},
                         {"devices", std::move(devices)}});
  }
  auto silent = nlohmann::json::array();
  for (const SilentProcess& one : survey.silent) {
    silent.push_back({{"slot", one.slot.value()}, {"pid", one.pid}, {"reason", one.reason}});
  }
  return {{"processes", std::move(processes)}, {"silent", std::move(silent)}};
}

std::map<std::string, std::uint64_t> counted_drops(const CounterSurvey& survey) {
  std::map<std::string, std::uint64_t> drops;
  for (const ProcessCounters& process : survey.processes) {
    for (const auto& block : process.page.blocks) {
      for (const auto& row : block.rows) {
        if (row.value != 0 && find_drop(row.name) != nullptr) drops[row.name] += row.value;
      }
    }
  }
  return drops;
}

CounterSurvey only_process(const CounterSurvey& survey, std::uint32_t pid) {
  CounterSurvey only;
  only.shortage = survey.shortage;
  for (const ProcessCounters& process : survey.processes) {
    if (process.pid == pid) only.processes.push_back(process);
  }
  for (const SilentProcess& silent : survey.silent) {
    if (silent.pid == pid) only.silent.push_back(silent);
  }
  return only;
}

std::string printable(std::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return clean;
}

}  // namespace verbena::cli
