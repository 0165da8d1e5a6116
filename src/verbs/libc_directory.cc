// opendir() and what follows it, for directories of ours; see libc_open.cc.
//
// A directory of ours is an object of this file under the name DIR. How many are open is counted, and while that is
// none, as nearly always, the calls that are handed a DIR go on to libc after one load.
// Not served: directories opened by open(O_DIRECTORY), fdopendir(), scandirat() and telldir(), which stay libc's.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dirent.h>

#include "verbs/export.h"
#include "verbs/libc_next.h"
#include "verbs/sysfs_lookup.h"

namespace verbena::verbs {
namespace {

static_assert(sizeof(struct dirent) == sizeof(struct dirent64));

constinit LibcNext<DIR*(const char*)> next_opendir{"opendir"};
constinit LibcNext<struct dirent*(DIR*)> next_readdir{"readdir"};
constinit LibcNext<int(DIR*)> next_closedir{"closedir"};
constinit LibcNext<void(DIR*)> next_rewinddir{"rewinddir"};
constinit LibcNext<int(DIR*)> next_dirfd{"dirfd"};
using Filter = int (*)(const struct dirent*);
using Order = int (*)(const struct dirent**, const struct dirent**);
constinit LibcNext<int(const char*, struct dirent***, Filter, Order)> next_scandir{"scandir"};

[[gnu::constructor]] void find_calls() noexcept {
  find_all(next_opendir, next_readdir, next_closedir, next_rewinddir, next_dirfd, next_scandir);
}

struct OwnDirectory {
  std::vector<std::string> names;
  std::size_t next = 0;
  struct dirent entry {};
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<OwnDirectory>> open;  // guarded by mutex
};

Registry& registry() noexcept {
  static Registry& instance = *new Registry;
  return instance;
}

// The size of Registry::open, for the test that takes no lock. A DIR that a thread holds was opened by itself, or
// handed to it by whoever did, so a relaxed load sees it counted.
constinit std::atomic<std::size_t> open_count{0};

OwnDirectory* own(DIR* directory) noexcept {
  if (open_count.load(std::memory_order_relaxed) == 0) return nullptr;
  auto* const wanted = reinterpret_cast<OwnDirectory*>(directory);
  const std::lock_guard lock(registry().mutex);
  const auto& open = registry().open;
  const auto found = std::find_if(open.begin(), open.end(), [&](const auto& one) { return one.get() == wanted; });
  return found == open.end() ? nullptr : wanted;
}

// The kernel's devices beside ours.
void add_kernel_names(const char* path, std::vector<std::string>& names) {
  DIR* const directory = next_opendir.get()(path);
  if (directory == nullptr) return;
  while (const struct dirent* const entry = next_readdir.get()(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  next_closedir.get()(directory);
}

DIR* open_own(const SysfsEntry& entry) {
  auto directory = std::make_unique<OwnDirectory>();
  directory->names = {".", ".."};
  directory->names.insert(directory->names.end(), entry.node.entries.begin(), entry.node.entries.end());
  if (entry.of_all_devices) add_kernel_names(entry.real_path.c_str(), directory->names);
  auto* const handle = reinterpret_cast<DIR*>(directory.get());
  const std::lock_guard lock(registry().mutex);
  registry().open.push_back(std::move(directory));
  open_count.store(registry().open.size(), std::memory_order_relaxed);
  return handle;
}

int close_own(OwnDirectory* directory) noexcept {
  const std::lock_guard lock(registry().mutex);
  auto& open = registry().open;
  std::erase_if(open, [&](const auto& one) { return one.get() == directory; });
  open_count.store(open.size(), std::memory_order_relaxed);
  return 0;
}

struct dirent* read_own(OwnDirectory& directory) noexcept {
  if (directory.next == directory.names.size()) return nullptr;
  const std::string& name = directory.names[directory.next++];
  struct dirent& entry = directory.entry;
  entry = {};
  entry.d_ino = directory.next;
  entry.d_off = static_cast<off_t>(directory.next);
  entry.d_reclen = sizeof entry;
  entry.d_type = DT_UNKNOWN;
  std::memcpy(entry.d_name, name.data(), std::min(name.size(), sizeof entry.d_name - 1));
  return &entry;
}

struct Freed {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using OwnedEntry = std::unique_ptr<struct dirent, Freed>;

// As scandir(): the caller frees the list and each entry.
int scan_own(const SysfsEntry& opened, struct dirent*** list, Filter filter, Order order) {
  std::vector<OwnedEntry> chosen;
  auto* const directory = open_own(opened);
  while (const struct dirent* const entry = read_own(*reinterpret_cast<OwnDirectory*>(directory))) {
    if (filter != nullptr && filter(entry) == 0) continue;
    chosen.emplace_back(static_cast<struct dirent*>(std::malloc(sizeof *entry)));
    if (chosen.back() == nullptr) break;
    *chosen.back() = *entry;
  }
  close_own(reinterpret_cast<OwnDirectory*>(directory));
  auto** const raw = static_cast<struct dirent**>(std::malloc(std::max<std::size_t>(1, chosen.size()) * sizeof(void*)));
  if (raw == nullptr || (!chosen.empty() && chosen.back() == nullptr)) {
    std::free(raw);
    errno = ENOMEM;
    return -1;
  }
  if (order != nullptr) {
    std::sort(chosen.begin(), chosen.end(), [order](const OwnedEntry& a, const OwnedEntry& b) {
      const struct dirent* first = a.get();
      const struct dirent* second = b.get();
      return order(&first, &second) < 0;
    });
  }
  std::transform(chosen.begin(), chosen.end(), raw, [](OwnedEntry& entry) { return entry.release(); });
  *list = raw;
  return static_cast<int>(chosen.size());
}

}  // namespace

VERBENA_EXPORT DIR* opendir(const char* path) {
  if (!may_be_our_path(path)) return next_opendir.get()(path);
  const auto entry = look_up_sysfs(path);
  if (!entry) return next_opendir.get()(path);
  if (entry->node.kind == SysfsNode::Kind::kElsewhere) return next_opendir.get()(entry->node.text.c_str());
  if (entry->node.kind != SysfsNode::Kind::kDirectory) {
    errno = ENOTDIR;
    return nullptr;
  }
  try {
    return open_own(*entry);
  } catch (...) {
    errno = ENOMEM;
    return nullptr;
  }
}

VERBENA_EXPORT int scandir(const char* path, struct dirent*** list, Filter filter, Order order) {
  if (!may_be_our_path(path)) return next_scandir.get()(path, list, filter, order);
  const auto entry = look_up_sysfs(path);
  if (!entry || entry->node.kind == SysfsNode::Kind::kElsewhere) {
    return next_scandir.get()(entry ? entry->node.text.c_str() : path, list, filter, order);
  }
  if (entry->node.kind != SysfsNode::Kind::kDirectory) {
    errno = ENOTDIR;
    return -1;
  }
  try {
    return scan_own(*entry, list, filter, order);
  } catch (...) {
    errno = ENOMEM;
    return -1;
  }
}

VERBENA_EXPORT int scandir64(const char* path, struct dirent64*** list, int (*filter)(const struct dirent64*),
                             int (*order)(const struct dirent64**, const struct dirent64**)) {
  return scandir(path, reinterpret_cast<struct dirent***>(list), reinterpret_cast<Filter>(filter),
                 reinterpret_cast<Order>(order));
}

VERBENA_EXPORT struct dirent* readdir(DIR* directory) {
  if (OwnDirectory* const ours = own(directory)) return read_own(*ours);
  return next_readdir.get()(directory);
}

VERBENA_EXPORT struct dirent64* readdir64(DIR* directory) {
  return reinterpret_cast<struct dirent64*>(readdir(directory));
}

VERBENA_EXPORT int closedir(DIR* directory) {
  if (OwnDirectory* const ours = own(directory)) return close_own(ours);
  return next_closedir.get()(directory);
}

VERBENA_EXPORT void rewinddir(DIR* directory) noexcept {
  if (OwnDirectory* const ours = own(directory)) {
    ours->next = 0;
    return;
  }
  next_rewinddir.get()(directory);
}

VERBENA_EXPORT int dirfd(DIR* directory) noexcept {
  if (own(directory) == nullptr) return next_dirfd.get()(directory);
  errno = ENOTSUP;
  return -1;
}

}  // namespace verbena::verbs
