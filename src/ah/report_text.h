// The words in which a directory is shown to other processes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counter.h"
#include "host/counter_page.h"
#include "verbena/ah_report.h"

namespace verbena::ah {

// A row for each count of AhStats, and one for each bucket of the histogram: creation_us_below_<end of the bucket>.
std::span<const CounterRow> report_rows();
// In the order of report_rows().
std::vector<std::uint64_t> report_values(const AhStats& stats);

// The first line of a dump, and the line of one entry. Tabs between, control characters as blanks.
std::string dump_head();
std::string dump_line(std::string_view directory, const AhRow& row);

}  // namespace verbena::ah
