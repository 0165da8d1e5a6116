// What a survey of counters looks like to a person and to a program. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/drop.h"
#include "base/instant.h"
#include "cli/counter_source.h"

namespace verbena::cli {

// The row of the drop that has this name; nullptr where the name is that of another counter.
const CounterRow* find_drop(std::string_view name) noexcept;

struct ReportStyle {
  bool all = false;          // also what is zero
  std::int64_t time_ns = 0;  // now, since 1970
};

// Text for people: a paragraph a process, a table a device; drops with their meaning, then the other counters. With
// `earlier`, a survey of `interval` before, also how much was added a second.
std::string render_drops(const CounterSurvey& survey, const ReportStyle& style);
std::string render_drops(const CounterSurvey& survey, const ReportStyle& style, const CounterSurvey& earlier,
                         Duration interval);

// {"processes": [{"pid", "process", "slots", "started_ns", "devices": [{"device", "drops": {name: count},
// "counters": {name: count}}]}], "silent": [{"slot", "pid", "reason"}]}. Every row, zero or not.
nlohmann::json drops_to_json(const CounterSurvey& survey);

// The drops of all processes and devices together that are not zero, by name.
std::map<std::string, std::uint64_t> counted_drops(const CounterSurvey& survey);

// Only that process; empty where it is not among them.
CounterSurvey only_process(const CounterSurvey& survey, std::uint32_t pid);

// `text` with control characters, which a terminal would obey, as '?'.
std::string printable(std::string_view text);

}  // namespace verbena::cli
