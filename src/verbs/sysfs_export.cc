// The exports of libibverbs that read sysfs for a program.
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/real.h"
#include "verbs/refusal.h"
#include "verbs/sysfs_lookup.h"

namespace verbena::verbs {
namespace {

constinit Real<const char*(void)> real_get_sysfs_path{"ibv_get_sysfs_path", "IBVERBS_1.0"};
constinit Real<int(const char*, const char*, char*, std::size_t)> real_read_sysfs_file{"ibv_read_sysfs_file",
                                                                                       "IBVERBS_1.0"};
// Takes what a format takes, and so cannot be a Real.
constinit RealAddress real_read_ibdev_sysfs_file{"ibv_read_ibdev_sysfs_file", "IBVERBS_PRIVATE_34"};
using ReadIbdevSysfsFile = int (*)(char*, std::size_t, verbs_sysfs_dev*, const char*, ...);

constexpr std::size_t kPathRoom = 512;

// Reads once, without the newline at the end: how many bytes, or -1.
int read_once(int fd, char* buffer, std::size_t size) noexcept {
  if (fd < 0) return -1;
  const ssize_t length = ::read(fd, buffer, size);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  if (length <= 0) return static_cast<int>(length);
  if (buffer[length - 1] == '\n') {
    buffer[length - 1] = '\0';
    return static_cast<int>(length) - 1;
  }
  if (static_cast<std::size_t>(length) == size) return -1;
  buffer[length] = '\0';
  return static_cast<int>(length);
}

int read_ours(const SysfsEntry& entry, char* buffer, std::size_t size) noexcept {
  const bool elsewhere = entry.node.kind == SysfsNode::Kind::kElsewhere;
  return read_once(elsewhere ? ::open(entry.node.text.c_str(), O_RDONLY | O_CLOEXEC)
                             : open_sysfs_node(entry.node, O_RDONLY | O_CLOEXEC),
                   buffer, size);
}

}  // namespace

VERBENA_EXPORT const char* ibv_get_sysfs_path(void) {
  return real_get_sysfs_path.call_or("/sys");
}

VERBENA_EXPORT int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, std::size_t size) {
  if (may_be_our_path(directory)) {
    std::array<char, kPathRoom> path{};
    std::snprintf(path.data(), path.size(), "%s/%s", directory, file);
    const auto entry = look_up_sysfs(path.data());
    if (entry && !entry->of_all_devices) return read_ours(*entry, buffer, size);
  }
  return real_read_sysfs_file.call_or(-1, directory, file, buffer, size);
}

VERBENA_EXPORT int ibv_read_ibdev_sysfs_file(char* buffer, std::size_t size, verbs_sysfs_dev* sysfs, const char* format,
                                             ...) {
  std::array<char, kPathRoom> below{};
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(below.data(), below.size(), format, arguments);
  va_end(arguments);
  if (!in_our_range(sysfs)) {
    void* const real = real_read_ibdev_sysfs_file.get();
    return real == nullptr ? -1 : reinterpret_cast<ReadIbdevSysfsFile>(real)(buffer, size, sysfs, "%s", below.data());
  }
  return ibv_read_sysfs_file(reinterpret_cast<VerbsDevice*>(sysfs)->device.ibdev_path, below.data(), buffer, size);
}

}  // namespace verbena::verbs
