// What a survey of directories looks like to a person and to a program. Pure.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/instant.h"
#include "cli/directory_source.h"

namespace verbena::cli {

// A table a process, a row a directory: what there is now and what happened; with `earlier`, a survey of `interval`
// before, what happened as rates. Behind it the latencies of creation.
std::string render_directories(const DirectorySurvey& survey);
std::string render_directories(const DirectorySurvey& survey, const DirectorySurvey& earlier, Duration interval);

// A table of entries a process.
std::string render_entries(const DirectorySurvey& survey);

// {"processes": [{"pid", "process", "started_ns", "directories": [{"directory", "ended", "counts": {name: value}}],
// "tenants": [{"tenant", "ended", "counts"}], "entries": [{name: value}]}], "silent": [{"pid", "reason"}]}. "entries"
// only where they were asked for.
nlohmann::json directories_to_json(const DirectorySurvey& survey, Ask what);

// The share `share` of the creations took at most so many microseconds; nothing where there were none. From the buckets
// of a block: the end of the bucket that holds it.
std::optional<std::uint64_t> creation_us_at(const host::CounterBlockReading& block, double share);

}  // namespace verbena::cli
