#include "ah/holding.h"

#include <cstring>

namespace verbena::ah {

namespace {

// Handles taken within that time share a record, which has the time of the first: so much is the inaccuracy.
constexpr std::uint32_t kSharedTicks = 60;  // about a second

// Acquire: partner of the release decrements; what the last holder did comes before what the next does.
bool try_join(Holding& record, const CallSite* place, std::uint32_t now) {
  const bool held = record.count.load(std::memory_order_acquire) != 0;
  return held && now - record.since <= kSharedTicks && record.place == place;
}

Holding& begin(Holding& record, const CallSite* place, std::uint32_t now) {
  record.place = place;
  record.since = now;
  record.count.store(1, std::memory_order_relaxed);
  return record;
}

}  // namespace

bool Holdings::ByPlace::operator()(const CallSite& a, const CallSite& b) const noexcept {
  if (a.line() != b.line()) return a.line() < b.line();
  return a.file_name() != b.file_name() && std::strcmp(a.file_name(), b.file_name()) < 0;
}

Holding& Holdings::take(const void* of, Holding* first, const CallSite& taken_at, std::int64_t now_ns) {
  const CallSite* const place = &*places_.insert(taken_at).first;
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
