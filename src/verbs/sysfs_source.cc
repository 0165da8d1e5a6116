#include "verbs/sysfs_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include "device/device.h"
#include "device/environment.h"
#include "device/interface_speed.h"
#include "device/netlink.h"
#include "device/subnet_file.h"
#include "verbs/context.h"
#include "verbs/port_rate.h"
#include "verbs/query.h"

namespace verbena::verbs {
namespace {

constexpr std::size_t kMaskBits = 32;

// "f", "ffffffff,ffffffff": a bit for each processor, in groups of 32, the highest first.
std::string mask_of(std::size_t processors) {
  std::string mask = fmt::format("{:x}", (1ULL << ((processors - 1) % kMaskBits + 1)) - 1);
  for (std::size_t group = 0; group < (processors - 1) / kMaskBits; ++group) mask += ",ffffffff";
  return mask;
}

// As the subnet has it, where its file holds: what is told before the device is open is what it will be then.
std::optional<device::InfinibandPort> configuration_of(const device::Device& identity, std::uint8_t number) {
  const auto& declared = identity.port(number).infiniband;
  const auto& settings = device::environment();
  if (!declared || !settings) return declared;
  const auto subnet = device::read_subnet_file(settings->subnet_file, settings->lids);
  if (!subnet) return declared;
  const auto port = device::configured(*declared, identity.port_name(number), *subnet);
  return port ? std::optional(*port) : declared;
}

// The port as rtnetlink has it now, where no context follows it.
device::PortSnapshot look_at_port(const device::Device& identity, std::uint8_t number) {
  device::PortSnapshot port;
  const auto netlink = device::Netlink::open();
  if (!netlink) return port;
  const auto network = (*netlink)->read();
  if (!network) return port;
  const device::Interface* const interface = device::find_interface(*network, identity.port(number));
  if (interface == nullptr) return port;
  port.up = interface->up;
  port.infiniband = configuration_of(identity, number);
  if (port.infiniband) {
    port.gids.set_infiniband(port.infiniband->gid());
  } else {
    port.gids.follow(*interface);
  }
  return port;
}

void fill_infiniband(const device::InfinibandPort& port, SysfsPort& files) {
  files.infiniband = true;
  files.capabilities = kInfinibandCapabilities;
  files.lid = port.lid;
  files.lmc = port.lmc;
  files.sm_lid = port.sm_lid;
  files.sm_sl = port.sm_sl;
  files.pkeys = port.pkeys;
  files.pkeys.resize(device::InfinibandPort::kPkeyTableLength);
}

SysfsPort sysfs_port(const device::Device& identity, std::uint8_t number) {
  SysfsPort files;
  files.interface = identity.port(number).interface_name;
  const auto open = open_port(identity, number);
  const device::PortSnapshot port = open ? *open : look_at_port(identity, number);
  files.state = port.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  files.phys_state = port.up ? 5 : 3;
  files.rate = port_rate(device::interface_megabits(files.interface)).text;
  files.capabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  files.pkeys = {engine::kDefaultPkey};
  if (port.infiniband) fill_infiniband(*port.infiniband, files);
  for (std::size_t i = 0; i < port.gids.length(); ++i) files.gids.push_back(port.gids.at(i));
  return files;
}

}  // namespace

std::optional<SysfsDevice> sysfs_device(std::string_view name) {
  for (const auto& identity : device::device_list()) {
    if (identity->name() != name) continue;
    const auto processors = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
    SysfsDevice device;
    device.name = identity->name();
    device.node_guid = identity->guid();
    device.firmware = VERBENA_VERSION;
    const std::string& first = identity->ports().front().interface_name;
    device.has_parent = ::access(("/sys/class/net/" + first + "/device").c_str(), F_OK) == 0;
    device.cpu_mask = mask_of(processors);
    device.cpu_list = processors == 1 ? "0" : fmt::format("0-{}", processors - 1);
    for (std::size_t i = 0; i < identity->ports().size(); ++i) {
      device.ports.push_back(sysfs_port(*identity, static_cast<std::uint8_t>(device::kFirstPort + i)));
    }
    return device;
  }
  return std::nullopt;
}

std::vector<std::string> sysfs_device_names() {
  std::vector<std::string> names;
  for (const auto& identity : device::device_list()) names.push_back(identity->name());
  return names;
}

}  // namespace verbena::verbs
