#include "ucm/descriptors.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace verbena::ucm {

constinit std::array<std::atomic<std::uint64_t>, kMostDescriptors> descriptor_inodes{};

bool remember_channel(int fd) noexcept {
  struct stat status {};
  if (static_cast<unsigned>(fd) >= kMostDescriptors || ::fstatat(fd, "", &status, AT_EMPTY_PATH) != 0) return false;
  descriptor_inodes[static_cast<unsigned>(fd)].store(status.st_ino, std::memory_order_relaxed);
  return true;
}

std::uint64_t channel_inode(int fd) noexcept {
  const int saved = errno;
  struct stat status {};
  const std::uint64_t opened = descriptor_inodes[static_cast<unsigned>(fd)].load(std::memory_order_relaxed);
  const bool still =
      ::fstatat(fd, "", &status, AT_EMPTY_PATH) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == opened;
  errno = saved;
  return still ? opened : 0;
}

}  // namespace verbena::ucm
