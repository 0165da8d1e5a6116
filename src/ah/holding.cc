#include "ah/holding.h"

#include <cstring>

namespace verbena::ah {

namespace {

// Handles taken within that time share a record, which has the time of the first: so much is the inaccuracy.
constexpr std::uint32_t kSharedTicks = 60;  // about a second

// The same call may have two names of its file, where it stands in a header.
bool is_same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// Acquire: partner of the release decrements; what the last holder did comes before what the next does.
bool try_join(Holding& record, const std::source_location& place, std::uint32_t now) {
  const bool held = record.count.load(std::memory_order_acquire) != 0;
  return held && now - record.since <= kSharedTicks && is_same(record.place, place);
}

Holding& begin(Holding& record, const std::source_location& place, std::uint32_t now) {
  record.place = place;
  record.since = now;
  record.count.store(1, std::memory_order_relaxed);
  return record;
}

}  // namespace

Holding& Holdings::take(const void* of, Holding* first, const std::source_location& place, std::int64_t now_ns) {
  const std::uint32_t now = holding_tick(now_ns);
  // Its count may fall to 0 meanwhile, but the record stays: it is the same place, at the same time.
  const auto join = [](Holding& record) -> Holding& {
    record.count.fetch_add(1, std::memory_order_relaxed);
    return record;
  };
  Holding* free = nullptr;
  const auto consider = [&](Holding& record) {
    if (try_join(record, place, now)) return true;
    if (free == nullptr && record.count.load(std::memory_order_acquire) == 0) free = &record;
    return false;
  };
  if (first != nullptr && consider(*first)) return join(*first);
  if (const auto found = more_.find(of); found != more_.end()) {
    for (const std::unique_ptr<Holding>& one : found->second) {
      if (consider(*one)) return join(*one);
    }
  }
  if (free != nullptr) return begin(*free, place, now);
  return begin(*more_[of].emplace_back(std::make_unique<Holding>()), place, now);
}

}  // namespace verbena::ah
