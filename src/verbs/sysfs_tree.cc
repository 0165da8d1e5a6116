#include "verbs/sysfs_tree.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace verbena::verbs {
namespace {

using Kind = SysfsNode::Kind;

SysfsNode file(std::string text) {
  return {Kind::kFile, std::move(text) + "\n", {}, false};
}

SysfsNode directory(std::vector<std::string> entries) {
  return {Kind::kDirectory, {}, std::move(entries), false};
}

SysfsNode elsewhere(std::string path, bool is_link = false) {
  return {Kind::kElsewhere, std::move(path), {}, is_link};
}

// Takes the first component off `path`.
std::string_view take_component(std::string_view& path) noexcept {
  const std::size_t slash = path.find('/');
  const std::string_view first = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  return first;
}

std::optional<std::size_t> parse_index(std::string_view text, std::size_t end) noexcept {
  std::size_t index = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || rest != text.data() + text.size() || text.empty() || index >= end) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return index;
}

std::vector<std::string> index_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::string guid_text(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48 & 0xffff, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                     guid & 0xffff);
}

std::string gid_text(const Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.bytes.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.bytes[i], gid.bytes[i + 1]);
  }
  return text;
}

std::string_view port_state_name(unsigned state) noexcept {
  constexpr std::array<std::string_view, 6> kNames{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return state < kNames.size() ? kNames[state] : "<unknown>";
}

std::string_view phys_state_name(unsigned state) noexcept {
  constexpr std::array<std::string_view, 8> kNames{
      "<unknown>",         "Sleep",   "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
      "LinkErrorRecovery", "Phy Test"};
  return state < kNames.size() ? kNames[state] : "<unknown>";
}

// gids/<i>, gid_attrs/types/<i>, gid_attrs/ndevs/<i>: `text_of` says what a used index holds.
template <class TextOf>
std::optional<SysfsNode> gid_slot(const SysfsPort& port, std::string_view path, bool empty_is_text, TextOf text_of) {
  if (path.empty()) return directory(index_names(port.gids.size()));
  const auto index = parse_index(path, port.gids.size());
  if (!index) return std::nullopt;
  const Gid& gid = port.gids[*index];
  if (gid.is_zero() && !empty_is_text) return SysfsNode{Kind::kEmptySlot, {}, {}, false};
  return file(text_of(gid));
}

std::optional<SysfsNode> find_gid_attribute(const SysfsPort& port, std::string_view path) {
  if (path.empty()) return directory({"ndevs", "types"});
  const std::string_view kind = take_component(path);
  if (kind == "types") {
    return gid_slot(port, path, false,
                    [&](const Gid&) { return std::string(port.infiniband ? "IB/RoCE v1" : "RoCE v2"); });
  }
  if (kind == "ndevs" && port.infiniband) {  // of no interface, as an empty one
    if (path.empty()) return directory(index_names(port.gids.size()));
    if (!parse_index(path, port.gids.size())) return std::nullopt;
    return SysfsNode{Kind::kEmptySlot, {}, {}, false};
  }
  if (kind == "ndevs") {
    return gid_slot(port, path, false, [&](const Gid&) { return port.interface; });
  }
  return std::nullopt;
}

std::optional<SysfsNode> find_pkey(const SysfsPort& port, std::string_view path) {
  if (path.empty()) return directory(index_names(port.pkeys.size()));
  const auto index = parse_index(path, port.pkeys.size());
  if (!index) return std::nullopt;
  return file(fmt::format("{:#06x}", port.pkeys[*index]));
}

std::optional<SysfsNode> find_port_file(const SysfsPort& port, std::string_view name) {
  if (name == "state") return file(fmt::format("{}: {}", port.state, port_state_name(port.state)));
  if (name == "phys_state") return file(fmt::format("{}: {}", port.phys_state, phys_state_name(port.phys_state)));
  if (name == "link_layer") return file(port.infiniband ? "InfiniBand" : "Ethernet");
  if (name == "rate") return file(port.rate);
  if (name == "lid") return file(fmt::format("{:#x}", port.lid));
  if (name == "sm_lid") return file(fmt::format("{:#x}", port.sm_lid));
  if (name == "sm_sl") return file(fmt::format("{}", port.sm_sl));
  if (name == "lid_mask_count") return file(fmt::format("{}", port.lmc));
  if (name == "cap_mask") return file(fmt::format("{:#010x}", port.capabilities));
  return std::nullopt;
}

std::optional<SysfsNode> find_in_port(const SysfsPort& port, std::string_view path) {
  if (path.empty()) {
    return directory({"cap_mask", "gid_attrs", "gids", "lid", "lid_mask_count", "link_layer", "phys_state", "pkeys",
                      "rate", "sm_lid", "sm_sl", "state"});
  }
  const std::string_view first = take_component(path);
  if (first == "gids") return gid_slot(port, path, true, gid_text);
  if (first == "gid_attrs") return find_gid_attribute(port, path);
  if (first == "pkeys") return find_pkey(port, path);
  return path.empty() ? find_port_file(port, first) : std::nullopt;
}

std::string with_rest(std::string start, std::string_view rest) {
  if (!rest.empty()) start.append("/").append(rest);
  return start;
}

// device/net: the interfaces of all ports, each once.
std::optional<SysfsNode> find_interface(const SysfsDevice& device, std::string_view path) {
  std::vector<std::string> names;
  for (const SysfsPort& port : device.ports) {
    if (std::find(names.begin(), names.end(), port.interface) == names.end()) names.push_back(port.interface);
  }
  if (path.empty()) return directory(std::move(names));
  const std::string_view name = take_component(path);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return elsewhere(with_rest("/sys/class/net/" + std::string(name), path), path.empty());
}

std::optional<SysfsNode> find_in_parent(const SysfsDevice& device, std::string_view path) {
  const std::string_view whole = path;
  const std::string_view first = take_component(path);
  if (first == "net") return find_interface(device, path);
  if (device.has_parent) {
    return elsewhere(with_rest("/sys/class/net/" + device.ports.front().interface + "/device", whole), whole.empty());
  }
  if (first.empty()) return directory({"local_cpulist", "local_cpus", "net", "numa_node"});
  if (!path.empty()) return std::nullopt;
  if (first == "numa_node") return file("-1");
  if (first == "local_cpus") return file(device.cpu_mask);
  if (first == "local_cpulist") return file(device.cpu_list);
  return std::nullopt;
}

std::optional<SysfsNode> find_device_file(const SysfsDevice& device, std::string_view name) {
  if (name == "node_type") return file("1: CA");
  if (name == "node_guid" || name == "sys_image_guid") return file(guid_text(device.node_guid));
  if (name == "node_desc") return file(device.name);
  if (name == "fw_ver") return file(device.firmware);
  if (name == "hw_rev") return file("0");
  if (name == "hca_type" || name == "board_id") return file("verbena");
  if (name == "ibdev") return file(device.name);  // of the infiniband_verbs class
  if (name == "abi_version") return file("1");
  return std::nullopt;
}

}  // namespace

std::optional<SysfsNode> find_node(const SysfsDevice& device, std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) {
    return directory({"board_id", "device", "fw_ver", "hca_type", "hw_rev", "node_desc", "node_guid", "node_type",
                      "ports", "sys_image_guid"});
  }
  const std::string_view first = take_component(path);
  if (first == "device") return find_in_parent(device, path);
  if (first == "ports") {
    std::vector<std::string> numbers = index_names(device.ports.size() + 1);
    numbers.erase(numbers.begin());  // they count from 1
    if (path.empty()) return directory(std::move(numbers));
    const auto number = parse_index(take_component(path), device.ports.size() + 1);
    return number && *number != 0 ? find_in_port(device.ports[*number - 1], path) : std::nullopt;
  }
  return path.empty() ? find_device_file(device, first) : std::nullopt;
}

bool split_sysfs_path(std::string_view path, SysfsPath& split) noexcept {
  split = {};
  constexpr std::string_view kCharacterDevices = "/dev/infiniband/";
  if (path.starts_with(kCharacterDevices)) {
    split.device = path.substr(kCharacterDevices.size());
    split.character_device = true;
    return !split.device.empty();
  }
  // The shorter class name is the beginning of the longer one: what follows it decides.
  constexpr std::array<std::string_view, 3> kClasses{"/sys/class/infiniband", "/sys/class/infiniband_verbs",
                                                     "/sys/devices/virtual/infiniband"};
  for (const std::string_view start : kClasses) {
    if (!path.starts_with(start)) continue;
    std::string_view rest = path.substr(start.size());
    if (!rest.empty() && rest.front() != '/') continue;
    while (rest.starts_with('/')) rest.remove_prefix(1);
    split.device = take_component(rest);
    while (rest.starts_with('/')) rest.remove_prefix(1);
    split.below = rest;
    return true;
  }
  return false;
}

}  // namespace verbena::verbs
