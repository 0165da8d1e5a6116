#include "device/device.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "device/environment.h"
#include "device/log.h"
#include "device/netlink.h"

namespace verbena::device {
namespace {

// EUI-64 of a MAC address, the universal bit flipped, with `middle` in its middle. Interfaces without a MAC address
// (lo) are told apart by their index.
std::uint64_t guid_of(const Interface& interface, std::uint16_t middle = 0xfffe) noexcept {
  const auto& mac = interface.mac;
  const auto high = static_cast<std::uint8_t>(middle >> 8);
  const auto low = static_cast<std::uint8_t>(middle);
  const std::array<std::uint8_t, 8> eui{
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], high, low, mac[3], mac[4], mac[5]};
  std::uint64_t guid = 0;
  for (const auto byte : eui) guid = (guid << 8) | byte;
  return mac == decltype(interface.mac){} ? guid | interface.index : guid;
}

using DeviceList = std::vector<std::unique_ptr<const Device>>;

// On one interface there is one port, unless they are InfiniBand ports that differ.
bool is_same(const DevicePort& a, const DevicePort& b) {
  return a.interface_index == b.interface_index && a.infiniband == b.infiniband;
}

const Device* find_device_of(const DeviceList& devices, const DevicePort& port) {
  for (const auto& device : devices) {
    if (std::any_of(device->ports().begin(), device->ports().end(),
                    [&port](const DevicePort& other) { return is_same(other, port); })) {
      return device.get();
    }
  }
  return nullptr;
}

// An interface that is a device already is not made another; one that is a port beside others cannot be had twice.
void add(DeviceList& devices, std::vector<DevicePort> ports) {
  for (const DevicePort& port : ports) {
    const Device* const other = find_device_of(devices, port);
    if (other == nullptr) continue;
    if (ports.size() == 1 && other->ports().size() == 1) return;
    log(Severity::kError, fmt::format("VERBENA_DEVICES names \"{}\" for two devices, and it is a port of {}: leave it "
                                      "out of one of them. The second is not made",
                                      port.interface_name, other->name()));
    return;
  }
  devices.push_back(
      std::make_unique<const Device>(fmt::format("{}{}", kDeviceNamePrefix, devices.size()), std::move(ports)));
}

// The ports of a declared device; empty where an interface is not there, which is then in `missing`.
std::vector<DevicePort> find_ports(const Network& network, const DeviceDeclaration& declared,
                                   std::vector<std::string>& missing) {
  std::vector<DevicePort> ports;
  for (const PortDeclaration& port : declared.ports) {
    if (const Interface* const interface = find_interface(network, port.interface)) {
      ports.emplace_back(*interface, port.infiniband);
    } else {
      missing.push_back(port.interface);
    }
  }
  if (ports.size() < declared.ports.size()) ports.clear();
  return ports;
}

DeviceList make_list() {
  const auto& settings = environment();
  if (!settings) return {};
  auto netlink = Netlink::open();
  auto network = netlink ? (*netlink)->read() : Result<Network>(tl::make_unexpected(netlink.error()));
  if (!network) {
    log(Severity::kError, fmt::format("no devices: {}", network.error().message));
    return {};
  }
  std::vector<std::string> missing;
  DeviceList devices;
  if (settings->devices.empty()) {
    for (const auto* interface : choose_interfaces(*network)) add(devices, {DevicePort(*interface)});
  }
  for (const auto& declared : settings->devices) {
    if (auto ports = find_ports(*network, declared, missing); !ports.empty()) add(devices, std::move(ports));
  }
  for (const auto& name : missing) {
    log(Severity::kError,
        fmt::format(
            "VERBENA_DEVICES names \"{}\", which is no interface of this network namespace; `ip link` lists them",
            name));
  }
  return devices;
}

}  // namespace

DevicePort::DevicePort(const Interface& interface, const std::optional<InfinibandPort>& declared)
    : interface_name(interface.name), interface_index(interface.index), guid(guid_of(interface)), infiniband(declared) {
  if (!infiniband) return;
  if (infiniband->guid == 0) infiniband->guid = guid_of(interface, infiniband->lid);
  guid = infiniband->guid;
}

const Interface* find_interface(const Network& network, const DevicePort& port) noexcept {
  const Interface* const same = find_interface(network, port.interface_index);
  return same != nullptr ? same : find_interface(network, port.interface_name);
}

std::string Device::port_name(std::uint8_t number) const {
  return ports_.size() == 1 ? name_ : fmt::format("{}/{}", name_, number);
}

std::span<const std::unique_ptr<const Device>> device_list() noexcept {
  static auto& mutex = *new std::mutex;
  static auto& devices = *new std::vector<std::unique_ptr<const Device>>;
  const std::lock_guard guard(mutex);
  if (devices.empty()) devices = make_list();
  return devices;
}

}  // namespace verbena::device
