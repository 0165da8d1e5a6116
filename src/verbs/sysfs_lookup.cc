#include "verbs/sysfs_lookup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device/device.h"
#include "device/log.h"
#include "ucm/service.h"
#include "ucm/station.h"
#include "verbs/sysfs_source.h"

namespace verbena::verbs {
namespace {

constexpr std::string_view kClassDirectory = "/sys/class/";
constexpr std::string_view kRealDirectory = "/sys/devices/virtual/infiniband";
constexpr std::string_view kConnectionDevice = "rdma_cm";
constexpr mode_t kReadable = 0444;
constexpr mode_t kListable = 0755;
constexpr mode_t kAccessible = 0666;
constexpr off_t kSysfsFileSize = 4096;

SysfsEntry all_devices(std::string_view path) {
  SysfsEntry entry;
  entry.node.kind = SysfsNode::Kind::kDirectory;
  entry.node.entries = sysfs_device_names();
  entry.real_path = std::string(path);
  entry.of_all_devices = true;
  return entry;
}

// Connections are made on ports of Ethernet, by their IP addresses. Where there is none, the kernel's rdma_cm is the
// one that a program wants, if there is one.
bool has_connections() noexcept {
  const auto devices = device::device_list();
  return std::any_of(devices.begin(), devices.end(), [](const auto& device) { return ucm::has_ethernet(*device); });
}

std::optional<SysfsEntry> find_entry(std::string_view path) {
  SysfsPath split;
  if (!split_sysfs_path(path, split)) return std::nullopt;
  if (split.device.empty()) return all_devices(path);
  if (split.character_device && split.device == kConnectionDevice) {
    if (!has_connections()) return std::nullopt;
    return SysfsEntry{{SysfsNode::Kind::kConnectionDevice, {}, {}, false}, std::string(path), false};
  }
  // Constructors of other libraries ask for devices of theirs before this process is ready to list ours.
  if (!split.device.starts_with(device::kDeviceNamePrefix)) return std::nullopt;
  const auto device = sysfs_device(split.device);
  if (!device) return std::nullopt;
  if (split.character_device) {
    return SysfsEntry{{SysfsNode::Kind::kCharacterDevice, {}, {}, false}, std::string(path), false};
  }
  auto node = find_node(*device, split.below);
  if (!node) return std::nullopt;
  SysfsEntry entry{std::move(*node), std::string(kRealDirectory) + "/" + device->name, false};
  if (split.below.empty()) {
    entry.node.is_link = path.starts_with(kClassDirectory);
    entry.node.text = "../../devices/virtual/infiniband/" + device->name;
  } else {
    entry.real_path.append("/").append(split.below);
    while (entry.real_path.ends_with('/')) entry.real_path.pop_back();
  }
  if (entry.node.kind == SysfsNode::Kind::kElsewhere) entry.real_path.clear();
  return entry;
}

// An epoll descriptor can be opened for reading, and every read of it fails with EINVAL.
int open_empty_slot(int flags) noexcept {
  return ::epoll_create1((flags & O_CLOEXEC) != 0 ? EPOLL_CLOEXEC : 0);
}

int open_text(const std::string& text, int flags) noexcept {
  // Beyond a limit on file sizes (ulimit -f) the kernel would end the application by a signal.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < text.size()) {
    errno = EFBIG;
    // Programs that read these files, such as ibstat, do not say so.
    const Error error = device::system_error("Cannot show what the files of a device in /sys/class say");
    device::log_once(device::Severity::kError, error.message);
    errno = EFBIG;
    return -1;
  }
  const unsigned close_on_exec = (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0U;
  const int fd = ::memfd_create("verbena-sysfs", close_on_exec | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    const int saved = errno;
    ::close(fd);
    errno = saved;
    return -1;
  }
  return fd;
}

}  // namespace

dev_t connection_device_number() noexcept {
  const int saved = errno;
  const int fd = ::open("/sys/class/misc/rdma_cm/dev", O_RDONLY | O_CLOEXEC);
  std::array<char, 32> text{};
  const auto size = fd < 0 ? -1 : ::read(fd, text.data(), text.size() - 1);
  if (fd >= 0) ::close(fd);
  errno = saved;
  if (size <= 0) return 0;
  unsigned major = 0;
  const char* const end = text.data() + size;
  const auto [colon, error] = std::from_chars(text.data(), end, major);
  unsigned minor = 0;
  if (error != std::errc() || colon == end || std::from_chars(colon + 1, end, minor).ec != std::errc()) return 0;
  return makedev(major, minor);
}

std::optional<SysfsEntry> look_up_sysfs(const char* path) noexcept {
  const int saved = errno;
  try {
    auto entry = find_entry(path);
    errno = saved;
    return entry;
  } catch (...) {
    errno = saved;
    return std::nullopt;
  }
}

int open_sysfs_node(const SysfsNode& node, int flags) noexcept {
  if (node.kind == SysfsNode::Kind::kConnectionDevice) {
    if (auto* const service = ucm::Service::instance()) return service->open_channel(flags);
    errno = ENOMEM;
    return -1;
  }
  if (node.kind == SysfsNode::Kind::kCharacterDevice) {  // there is no kernel driver behind it
    errno = ENXIO;
    return -1;
  }
  if ((flags & O_ACCMODE) != O_RDONLY) {
    errno = EACCES;
    return -1;
  }
  if (node.kind == SysfsNode::Kind::kDirectory) {
    errno = EISDIR;
    return -1;
  }
  if ((flags & O_DIRECTORY) != 0) {
    errno = ENOTDIR;
    return -1;
  }
  return node.kind == SysfsNode::Kind::kEmptySlot ? open_empty_slot(flags) : open_text(node.text, flags);
}

void fill_sysfs_status(const SysfsNode& node, bool follow, struct stat& status) noexcept {
  status = {};
  status.st_nlink = 1;
  status.st_blksize = kSysfsFileSize;
  if (node.is_link && !follow) {
    status.st_mode = S_IFLNK | 0777;
  } else if (node.kind == SysfsNode::Kind::kDirectory) {
    status.st_mode = S_IFDIR | kListable;
  } else if (node.kind == SysfsNode::Kind::kCharacterDevice || node.kind == SysfsNode::Kind::kConnectionDevice) {
    status.st_mode = S_IFCHR | kAccessible;
    if (node.kind == SysfsNode::Kind::kConnectionDevice) status.st_rdev = connection_device_number();
  } else {
    status.st_mode = S_IFREG | kReadable;
    status.st_size = kSysfsFileSize;
  }
}

}  // namespace verbena::verbs
