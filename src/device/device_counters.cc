#include "device/device_counters.h"

#include "device/log.h"

namespace verbena::device {
namespace {

constexpr std::size_t kFirstTraffic = kDropCount - 1;
constexpr std::size_t kFirstObject = kFirstTraffic + static_cast<std::size_t>(Traffic::kCount);

}  // namespace

std::vector<CounterRow> DeviceCounters::rows() {
  std::vector<CounterRow> rows(kDropRows.begin() + 1, kDropRows.end());  // without kNone
  rows.insert(rows.end(), kTrafficRows.begin(), kTrafficRows.end());
  for (const ObjectRow& row : kObjectRows) rows.push_back(row.gauge);
  return rows;
}

void DeviceCounters::count(Drop drop, std::uint64_t how_many) noexcept {
  if (drop != Drop::kNone) block_.add(static_cast<std::size_t>(drop) - 1, how_many);
}

void DeviceCounters::explain(std::string_view sentence) noexcept {
  log(Severity::kWarning, sentence);
}

void DeviceCounters::add(Traffic traffic, std::uint64_t how_many) noexcept {
  block_.add(kFirstTraffic + static_cast<std::size_t>(traffic), how_many);
}

void DeviceCounters::add(ObjectKind kind) noexcept {
  block_.add(kFirstObject + static_cast<std::size_t>(kind), 1);
}

void DeviceCounters::remove(ObjectKind kind) noexcept {
  block_.add(kFirstObject + static_cast<std::size_t>(kind), ~std::uint64_t{0});  // modulo 2^64: one less
}

}  // namespace verbena::device
