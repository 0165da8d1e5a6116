#include "device/device_counters.h"

#include "device/log.h"

namespace verbena::device {

std::vector<CounterRow> DeviceCounters::rows() {
  std::vector<CounterRow> rows(kDropRows.begin() + 1, kDropRows.end());  // without kNone
  rows.insert(rows.end(), kTrafficRows.begin(), kTrafficRows.end());
  return rows;
}

void DeviceCounters::count(Drop drop, std::uint64_t how_many) noexcept {
  if (drop != Drop::kNone) block_.add(static_cast<std::size_t>(drop) - 1, how_many);
}

void DeviceCounters::explain(std::string_view sentence) noexcept {
  log(Severity::kWarning, sentence);
}

void DeviceCounters::add(Traffic traffic, std::uint64_t how_many) noexcept {
  block_.add(kDropCount - 1 + static_cast<std::size_t>(traffic), how_many);
}

}  // namespace verbena::device
