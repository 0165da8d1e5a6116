// What /sys/class/infiniband/<device> would say of a device of ours: a tree worked out from a few values at the moment
// a program looks. Programs read it by path, past the verbs API: for the GID types and their interfaces most of all.
//
//   node_type node_guid sys_image_guid node_desc fw_ver board_id hca_type
//   ports/<n>/{state phys_state link_layer rate lid sm_lid sm_sl lid_mask_count cap_mask}
//   ports/<n>/gids/<i>  ports/<n>/pkeys/<i>  ports/<n>/gid_attrs/{types,ndevs}/<i>
//   device/net/<interface>/...   the files of the ports' interfaces, elsewhere in sysfs
//   device/...                   of the device of port 1's interface where it has one; else numa_node, local_cpus,
//                                local_cpulist
//
// Answers are values: nothing here reads a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbena/gid.h"

namespace verbena::verbs {

// A port of a device as its files tell of it.
struct SysfsPort {
  std::string interface;    // the network interface under it
  unsigned state = 0;       // enum ibv_port_state
  unsigned phys_state = 0;  // 5: link up
  std::string rate;         // "10 Gb/sec (1X QDR)"
  std::uint32_t capabilities = 0;
  bool infiniband = false;  // else Ethernet
  unsigned lid = 0;
  unsigned lmc = 0;
  unsigned sm_lid = 0;
  unsigned sm_sl = 0;
  std::vector<std::uint16_t> pkeys;
  std::vector<Gid> gids;  // the zero GID where the index is empty
};

struct SysfsDevice {
  std::string name;
  std::uint64_t node_guid = 0;
  std::string firmware;
  bool has_parent = false;       // the interface of port 1 has a device of its own in sysfs
  std::string cpu_mask;          // "ff", for local_cpus
  std::string cpu_list;          // "0-7", for local_cpulist
  std::vector<SysfsPort> ports;  // port 1 first; one at least
};

struct SysfsNode {
  enum class Kind : std::uint8_t {
    kFile,              // `text` is its content
    kEmptySlot,         // a file that exists, and whose read fails with EINVAL: an attribute of an empty GID index
    kDirectory,         // `entries` are the names in it
    kElsewhere,         // `text` is the path of the real thing
    kCharacterDevice,   // /dev/infiniband/NAME: it is there and accessible, which is all that programs ask of it
    kConnectionDevice,  // /dev/infiniband/rdma_cm: opens a channel of ucm
  };
  Kind kind = Kind::kFile;
  std::string text;
  std::vector<std::string> entries;
  bool is_link = false;  // readlink() answers with `text`
};

// The node at `path` below the device, without a leading slash; "" is the device itself. Nothing where it does not
// exist.
std::optional<SysfsNode> find_node(const SysfsDevice& device, std::string_view path);

// Splits "/sys/class/infiniband/NAME/REST", the other two ways to the same place, and "/dev/infiniband/NAME". False for
// any other path.
struct SysfsPath {
  std::string_view device;  // empty: the directory of all devices
  std::string_view below;
  bool character_device = false;
};
bool split_sysfs_path(std::string_view path, SysfsPath& split) noexcept;

// Whether a path may be ours. Cheap: every open() of the process asks.
inline bool may_be_our_path(const char* path) noexcept {
  const auto begins_with = [path](std::string_view start) {
    const char* at = path;
    for (const char wanted : start) {
      if (*at++ != wanted) return false;
    }
    return true;
  };
  if (path == nullptr || path[0] != '/') return false;
  return path[1] == 's' ? begins_with("/sys/") : path[1] == 'd' && begins_with("/dev/infiniband/");
}

}  // namespace verbena::verbs
