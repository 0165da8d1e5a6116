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

// What a tenant may have and has; a limit of 0: none.
struct TenantBudget {
  std::uint64_t handles_limit = 0;
  std::uint64_t share = 0;
  std::uint64_t memory = 0;  // bytes
  std::uint64_t memory_limit = 0;
  std::uint64_t creations_limit = 0;  // a second
};

// The directories of a tenant.
struct DirectorySum {
  std::uint64_t directories = 0;  // open
  AhStats stats;
};

// The rows of the budget, named tenant_..., then report_rows().
std::span<const CounterRow> tenant_rows();
std::vector<std::uint64_t> tenant_values(const TenantBudget& budget, const DirectorySum& sum);

// The counts of two directories together: what is there and what happened; the older of the oldest.
void add_all(AhStats& sum, const AhStats& more);
// What happened only.
void add_events(AhStats& sum, const AhStats& more);

// The first line of a dump, and the line of one entry. Tabs between, control characters as blanks.
std::string dump_head();
std::string dump_line(std::string_view directory, const AhRow& row);

}  // namespace verbena::ah
