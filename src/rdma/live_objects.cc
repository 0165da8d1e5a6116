#include "verbena/live_objects.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace verbena {

namespace {

// An address is that of one owner after the other; a number is not.
using Number = std::uint64_t;

struct Record {
  LiveObject object;
  const ibv_pd* domain = nullptr;
  std::vector<Number> uses;           // what it uses that is of no domain
  const ibv_pd* used_last = nullptr;  // of no domain itself: by which it was used last
};

// All guarded by the mutex.
struct Registry {
  std::mutex mutex;
  std::map<Number, Record> records;
  std::map<const void*, Number> numbers;  // of what has an owner, by that
  Number next = 1;

  Record* find(const void* object) {
    const auto at = numbers.find(object);
    const auto record = at == numbers.end() ? records.end() : records.find(at->second);
    return record == records.end() ? nullptr : &record->second;
  }
};

// Never destroyed: objects may be released after the end of main.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

std::vector<LiveObject> live_objects(const ibv_pd* domain) {
  const std::lock_guard lock(registry().mutex);
  std::set<Number> used;       // by anybody
  std::set<Number> used_here;  // by one of the domain
  for (const auto& [key, record] : registry().records) {
    used.insert(record.uses.begin(), record.uses.end());
    if (record.domain == domain) used_here.insert(record.uses.begin(), record.uses.end());
  }
  std::vector<LiveObject> found;
  for (const auto& [key, record] : registry().records) {
    const bool was_used_here = record.used_last == domain && used.count(key) == 0;
    if (record.domain == domain || used_here.count(key) != 0 || was_used_here) found.push_back(record.object);
  }
  return found;
}

std::vector<LiveObject> live_objects() {
  const std::lock_guard lock(registry().mutex);
  std::vector<LiveObject> found;
  for (const auto& [key, record] : registry().records) found.push_back(record.object);
  return found;
}

std::string in_words(const LiveObject& object) {
  return fmt::format("{} (made at {}:{}, in {})", object.what, object.place.file_name(), object.place.line(),
                     object.place.function_name());
}

void detail::note_alive(const void* object, std::string what, const CallSite& place, const ibv_pd* domain) {
  const std::lock_guard lock(registry().mutex);
  Record record;
  record.object = {std::move(what), place};
  record.domain = domain;
  const Number number = registry().next++;
  registry().records.emplace(number, std::move(record));
  registry().numbers.insert_or_assign(object, number);
}

std::string detail::with_place(const void* object, const std::string& what) {
  const std::lock_guard lock(registry().mutex);
  const Record* const record = registry().find(object);
  return record == nullptr ? what : in_words(record->object);
}

void detail::note_uses(const void* user, const void* object) {
  const std::lock_guard lock(registry().mutex);
  Record* const by = registry().find(user);
  Record* const used = registry().find(object);
  if (by == nullptr || used == nullptr) return;
  by->uses.push_back(registry().numbers.at(object));
  used->used_last = by->domain;
}

void detail::note_new_domain(const ibv_pd* domain) noexcept {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().records, [domain](const auto& one) { return one.second.domain == domain; });
  std::erase_if(registry().numbers, [](const auto& one) { return registry().records.count(one.second) == 0; });
  for (auto& [key, record] : registry().records) {
    if (record.used_last == domain) record.used_last = nullptr;
  }
}

void detail::note_left_behind(const void* object) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().numbers.erase(object);
}

void detail::note_gone(const void* object) noexcept {
  const std::lock_guard lock(registry().mutex);
  const auto at = registry().numbers.find(object);
  if (at == registry().numbers.end()) return;
  registry().records.erase(at->second);
  registry().numbers.erase(at);
}

}  // namespace verbena
