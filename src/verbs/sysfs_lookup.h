// From a path that a program hands to libc to the node of ours that it names.
//
// Thread-safety: any thread.
#pragma once

#include <optional>
#include <string>

#include <sys/stat.h>

#include "verbs/sysfs_tree.h"

namespace verbena::verbs {

struct SysfsEntry {
  SysfsNode node;
  std::string real_path;        // what realpath() answers; empty where the node is elsewhere
  bool of_all_devices = false;  // a class directory, in which the kernel's devices stand too
};

// Nothing where the path is none of ours, or names nothing: the kernel answers then.
// Requires: may_be_our_path(path), which keeps every other path off this way.
std::optional<SysfsEntry> look_up_sysfs(const char* path) noexcept;

// A descriptor to read the node's text from; -1 with errno EACCES for writing, EISDIR for a directory,
// ENXIO for a character device. Reading an empty
// slot fails with EINVAL.
int open_sysfs_node(const SysfsNode& node, int flags) noexcept;

// The number that the kernel's /dev/infiniband/rdma_cm has, which librdmacm compares where it is told of one; 0 where
// the kernel has none.
dev_t connection_device_number() noexcept;

// Fills `status` as for a file of sysfs; where `follow` is false, a link is told as such.
void fill_sysfs_status(const SysfsNode& node, bool follow, struct stat& status) noexcept;

}  // namespace verbena::verbs
