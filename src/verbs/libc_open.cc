// open() and fopen() in all their forms, so that programs which read sysfs by path find our devices there. A path that
// does not begin with /sys/ or /dev/infiniband/ goes on to libc at the cost of comparing its first letters, with every
// argument and errno as they were. A relative path and one below a directory descriptor are never ours. Nothing on the
// way to libc is noexcept: a thread may be cancelled in open(), which unwinds through here.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "verbs/export.h"
#include "verbs/libc_next.h"
#include "verbs/sysfs_lookup.h"

namespace verbena::verbs {
namespace {

constinit LibcNext<int(const char*, int, ...)> next_open{"open"};
constinit LibcNext<int(const char*, int, ...)> next_open64{"open64"};
constinit LibcNext<int(int, const char*, int, ...)> next_openat{"openat"};
constinit LibcNext<int(int, const char*, int, ...)> next_openat64{"openat64"};
constinit LibcNext<int(const char*, int)> next_open_2{"__open_2"};
constinit LibcNext<int(const char*, int)> next_open64_2{"__open64_2"};
constinit LibcNext<int(int, const char*, int)> next_openat_2{"__openat_2"};
constinit LibcNext<int(int, const char*, int)> next_openat64_2{"__openat64_2"};
constinit LibcNext<FILE*(const char*, const char*)> next_fopen{"fopen"};
constinit LibcNext<FILE*(const char*, const char*)> next_fopen64{"fopen64"};

[[gnu::constructor]] void find_calls() noexcept {
  find_all(next_open, next_open64, next_openat, next_openat64, next_open_2, next_open64_2, next_openat_2,
           next_openat64_2, next_fopen, next_fopen64);
}

bool takes_mode(int flags) noexcept {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

// `otherwise(path)` opens what is not ours, under the path where it really lies.
template <class Otherwise>
int open_or(const char* path, int flags, Otherwise otherwise) {
  if (!may_be_our_path(path)) return otherwise(path);
  const auto entry = look_up_sysfs(path);
  if (!entry || entry->of_all_devices) return otherwise(path);
  if (entry->node.kind == SysfsNode::Kind::kElsewhere) return otherwise(entry->node.text.c_str());
  return open_sysfs_node(entry->node, flags);
}

template <class Otherwise>
FILE* fopen_or(const char* path, const char* mode, Otherwise otherwise) {
  if (!may_be_our_path(path)) return otherwise(path);
  const auto entry = look_up_sysfs(path);
  if (!entry || entry->of_all_devices) return otherwise(path);
  if (entry->node.kind == SysfsNode::Kind::kElsewhere) return otherwise(entry->node.text.c_str());
  const bool writes = mode[0] != 'r' || std::strchr(mode, '+') != nullptr;
  const int close_on_exec = std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0;
  const int fd = open_sysfs_node(entry->node, (writes ? O_RDWR : O_RDONLY) | close_on_exec);
  if (fd < 0) return nullptr;
  FILE* const file = ::fdopen(fd, "r");
  if (file == nullptr) ::close(fd);
  return file;
}

}  // namespace

VERBENA_EXPORT int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_or(path, flags, [=](const char* where) { return next_open.get()(where, flags, mode); });
}

VERBENA_EXPORT int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_or(path, flags, [=](const char* where) { return next_open64.get()(where, flags, mode); });
}

VERBENA_EXPORT int openat(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_or(path, flags, [=](const char* where) { return next_openat.get()(directory, where, flags, mode); });
}

VERBENA_EXPORT int openat64(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = takes_mode(flags) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_or(path, flags, [=](const char* where) { return next_openat64.get()(directory, where, flags, mode); });
}

// What _FORTIFY_SOURCE makes of open() without a mode.
VERBENA_EXPORT int __open_2(const char* path, int flags) {
  return open_or(path, flags, [=](const char* where) { return next_open_2.get()(where, flags); });
}

VERBENA_EXPORT int __open64_2(const char* path, int flags) {
  return open_or(path, flags, [=](const char* where) { return next_open64_2.get()(where, flags); });
}

VERBENA_EXPORT int __openat_2(int directory, const char* path, int flags) {
  return open_or(path, flags, [=](const char* where) { return next_openat_2.get()(directory, where, flags); });
}

VERBENA_EXPORT int __openat64_2(int directory, const char* path, int flags) {
  return open_or(path, flags, [=](const char* where) { return next_openat64_2.get()(directory, where, flags); });
}

VERBENA_EXPORT FILE* fopen(const char* path, const char* mode) {
  return fopen_or(path, mode, [=](const char* where) { return next_fopen.get()(where, mode); });
}

VERBENA_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return fopen_or(path, mode, [=](const char* where) { return next_fopen64.get()(where, mode); });
}

}  // namespace verbena::verbs
