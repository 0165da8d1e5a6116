#include "verbena/live_objects.h"

#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace verbena {

namespace {

struct Record {
  LiveObject object;
  const ibv_pd* domain = nullptr;
};

struct Registry {
  std::mutex mutex;
  std::map<const void*, Record> records;  // guarded by mutex
};

// Never destroyed: objects may be released after the end of main.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

std::vector<LiveObject> live_objects(const ibv_pd* domain) {
  std::vector<LiveObject> found;
  const std::lock_guard lock(registry().mutex);
  for (const auto& [key, record] : registry().records) {
    if (record.domain == domain) found.push_back(record.object);
  }
  return found;
}

std::string in_words(const LiveObject& object) {
  return fmt::format("{} (made at {}:{}, in {})", object.what, object.place.file_name(), object.place.line(),
                     object.place.function_name());
}

void detail::note_alive(const void* object, std::string what, const std::source_location& place, const ibv_pd* domain) {
  const std::lock_guard lock(registry().mutex);
  registry().records.insert_or_assign(object, Record{{std::move(what), place}, domain});
}

void detail::note_used_by(const void* object, const ibv_pd* domain) {
  const std::lock_guard lock(registry().mutex);
  const auto at = registry().records.find(object);
  if (at != registry().records.end() && at->second.domain == nullptr) at->second.domain = domain;
}

void detail::note_new_domain(const ibv_pd* domain) noexcept {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().records, [domain](const auto& one) { return one.second.domain == domain; });
}

void detail::note_gone(const void* object) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().records.erase(object);
}

}  // namespace verbena
