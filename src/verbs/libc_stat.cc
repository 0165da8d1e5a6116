// stat(), access(), readlink() and realpath() in all their forms; see libc_open.cc.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "verbs/export.h"
#include "verbs/libc_next.h"
#include "verbs/sysfs_lookup.h"

namespace verbena::verbs {
namespace {

#ifdef __x86_64__
constexpr const char* kFirstGlibc = "GLIBC_2.2.5";
#else
constexpr const char* kFirstGlibc = "GLIBC_2.17";
#endif

// struct stat64 is struct stat on 64-bit machines; one set of pointers does for both.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
using StatCall = int(const char*, struct stat*);
using OldStatCall = int(int, const char*, struct stat*);

constinit LibcNext<StatCall> next_stat{"stat"};
constinit LibcNext<StatCall> next_lstat{"lstat"};
constinit LibcNext<int(int, const char*, struct stat*, int)> next_fstatat{"fstatat"};
constinit LibcNext<OldStatCall> next_xstat{"__xstat", kFirstGlibc};
constinit LibcNext<OldStatCall> next_lxstat{"__lxstat", kFirstGlibc};
constinit LibcNext<int(int, const char*, int, unsigned, struct statx*)> next_statx{"statx"};
constinit LibcNext<int(const char*, int)> next_access{"access"};
constinit LibcNext<int(int, const char*, int, int)> next_faccessat{"faccessat"};
constinit LibcNext<ssize_t(const char*, char*, std::size_t)> next_readlink{"readlink"};
constinit LibcNext<ssize_t(int, const char*, char*, std::size_t)> next_readlinkat{"readlinkat"};
constinit LibcNext<char*(const char*, char*)> next_realpath{"realpath"};

[[gnu::constructor]] void find_calls() noexcept {
  find_all(next_stat, next_lstat, next_fstatat, next_xstat, next_lxstat, next_statx, next_access, next_faccessat,
           next_readlink, next_readlinkat, next_realpath);
}

// A class directory is the kernel's where it exists, and ours where it does not.
bool kernel_has(const SysfsEntry& entry) noexcept {
  return entry.of_all_devices && next_access.get()(entry.real_path.c_str(), F_OK) == 0;
}

template <class Otherwise>
int stat_or(const char* path, bool follow, struct stat* status, Otherwise otherwise) noexcept {
  if (!may_be_our_path(path)) return otherwise(path);
  const auto entry = look_up_sysfs(path);
  if (!entry || kernel_has(*entry)) return otherwise(path);
  const bool as_link = entry->node.is_link && !follow;
  if (entry->node.kind == SysfsNode::Kind::kElsewhere && !as_link) return otherwise(entry->node.text.c_str());
  fill_sysfs_status(entry->node, follow, *status);
  return 0;
}

template <class Otherwise>
int access_or(const char* path, int mode, Otherwise otherwise) noexcept {
  if (!may_be_our_path(path)) return otherwise(path);
  const auto entry = look_up_sysfs(path);
  if (!entry || kernel_has(*entry)) return otherwise(path);
  if (entry->node.kind == SysfsNode::Kind::kElsewhere) return otherwise(entry->node.text.c_str());
  const bool directory = entry->node.kind == SysfsNode::Kind::kDirectory;
  const bool device =
      entry->node.kind == SysfsNode::Kind::kCharacterDevice || entry->node.kind == SysfsNode::Kind::kConnectionDevice;
  if (device && (mode & X_OK) == 0) return 0;
  if ((mode & W_OK) == 0 && ((mode & X_OK) == 0 || directory)) return 0;
  errno = EACCES;
  return -1;
}

template <class Otherwise>
ssize_t readlink_or(const char* path, char* buffer, std::size_t size, Otherwise otherwise) noexcept {
  if (!may_be_our_path(path)) return otherwise(path);
  const auto entry = look_up_sysfs(path);
  if (!entry || kernel_has(*entry)) return otherwise(path);
  if (!entry->node.is_link) {
    if (entry->node.kind == SysfsNode::Kind::kElsewhere) return otherwise(entry->node.text.c_str());
    errno = EINVAL;
    return -1;
  }
  const std::size_t length = std::min(size, entry->node.text.size());
  std::memcpy(buffer, entry->node.text.data(), length);
  return static_cast<ssize_t>(length);
}

char* real_path(const char* path, char* resolved) noexcept {
  if (!may_be_our_path(path)) return next_realpath.get()(path, resolved);
  const auto entry = look_up_sysfs(path);
  if (!entry || kernel_has(*entry)) return next_realpath.get()(path, resolved);
  if (entry->node.kind == SysfsNode::Kind::kElsewhere) return next_realpath.get()(entry->node.text.c_str(), resolved);
  if (resolved == nullptr) return ::strdup(entry->real_path.c_str());
  if (entry->real_path.size() >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return nullptr;
  }
  std::memcpy(resolved, entry->real_path.c_str(), entry->real_path.size() + 1);
  return resolved;
}

void to_statx(const struct stat& from, struct statx& to) noexcept {
  to = {};
  to.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_SIZE;
  to.stx_blksize = static_cast<std::uint32_t>(from.st_blksize);
  to.stx_nlink = static_cast<std::uint32_t>(from.st_nlink);
  to.stx_mode = static_cast<std::uint16_t>(from.st_mode);
  to.stx_size = static_cast<std::uint64_t>(from.st_size);
  to.stx_rdev_major = major(from.st_rdev);
  to.stx_rdev_minor = minor(from.st_rdev);
}

int stat_path(const char* path, struct stat* status) noexcept {
  return stat_or(path, true, status, [=](const char* where) { return next_stat.get()(where, status); });
}

int lstat_path(const char* path, struct stat* status) noexcept {
  return stat_or(path, false, status, [=](const char* where) { return next_lstat.get()(where, status); });
}

int fstatat_path(int directory, const char* path, struct stat* status, int flags) noexcept {
  return stat_or(path, (flags & AT_SYMLINK_NOFOLLOW) == 0, status,
                 [=](const char* where) { return next_fstatat.get()(directory, where, status, flags); });
}

int xstat_path(int version, const char* path, struct stat* status) noexcept {
  return stat_or(path, true, status, [=](const char* where) { return next_xstat.get()(version, where, status); });
}

int lxstat_path(int version, const char* path, struct stat* status) noexcept {
  return stat_or(path, false, status, [=](const char* where) { return next_lxstat.get()(version, where, status); });
}

struct stat* plain(struct stat64* status) noexcept {
  return reinterpret_cast<struct stat*>(status);
}

}  // namespace

VERBENA_EXPORT int stat(const char* path, struct stat* status) noexcept {
  return stat_path(path, status);
}

VERBENA_EXPORT int stat64(const char* path, struct stat64* status) noexcept {
  return stat_path(path, plain(status));
}

VERBENA_EXPORT int lstat(const char* path, struct stat* status) noexcept {
  return lstat_path(path, status);
}

VERBENA_EXPORT int lstat64(const char* path, struct stat64* status) noexcept {
  return lstat_path(path, plain(status));
}

VERBENA_EXPORT int fstatat(int directory, const char* path, struct stat* status, int flags) noexcept {
  return fstatat_path(directory, path, status, flags);
}

VERBENA_EXPORT int fstatat64(int directory, const char* path, struct stat64* status, int flags) noexcept {
  return fstatat_path(directory, path, plain(status), flags);
}

// What programs linked before glibc 2.33 call for stat() and lstat().
VERBENA_EXPORT int __xstat(int version, const char* path, struct stat* status) {
  return xstat_path(version, path, status);
}

VERBENA_EXPORT int __xstat64(int version, const char* path, struct stat64* status) {
  return xstat_path(version, path, plain(status));
}

VERBENA_EXPORT int __lxstat(int version, const char* path, struct stat* status) {
  return lxstat_path(version, path, status);
}

VERBENA_EXPORT int __lxstat64(int version, const char* path, struct stat64* status) {
  return lxstat_path(version, path, plain(status));
}

VERBENA_EXPORT int statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) noexcept {
  struct stat plain_status {};
  bool ours = true;
  const int result = stat_or(path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &plain_status, [&](const char* where) {
    ours = false;
    return next_statx.get()(directory, where, flags, mask, status);
  });
  if (ours) to_statx(plain_status, *status);
  return result;
}

VERBENA_EXPORT int access(const char* path, int mode) noexcept {
  return access_or(path, mode, [=](const char* where) { return next_access.get()(where, mode); });
}

VERBENA_EXPORT int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return access_or(path, mode, [=](const char* where) { return next_faccessat.get()(directory, where, mode, flags); });
}

VERBENA_EXPORT ssize_t readlink(const char* path, char* buffer, std::size_t size) noexcept {
  return readlink_or(path, buffer, size, [=](const char* where) { return next_readlink.get()(where, buffer, size); });
}

VERBENA_EXPORT ssize_t readlinkat(int directory, const char* path, char* buffer, std::size_t size) noexcept {
  return readlink_or(path, buffer, size,
                     [=](const char* where) { return next_readlinkat.get()(directory, where, buffer, size); });
}

VERBENA_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  return real_path(path, resolved);
}

// What _FORTIFY_SOURCE makes of realpath() and readlink(): the room is known to suffice, or the program ends.
VERBENA_EXPORT char* __realpath_chk(const char* path, char* resolved, std::size_t room) noexcept {
  if (room < PATH_MAX) std::abort();
  return real_path(path, resolved);
}

VERBENA_EXPORT ssize_t __readlink_chk(const char* path, char* buffer, std::size_t size, std::size_t room) noexcept {
  if (size > room) std::abort();
  return ::readlink(path, buffer, size);
}

}  // namespace verbena::verbs
