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

// The same interface is one device, unless it is declared with InfiniBand ports that differ.
bool is_there(const DeviceList& devices, const Device& wanted) {
  return std::any_of(devices.begin(), devices.end(), [&wanted](const auto& device) {
    return device->interface_index() == wanted.interface_index() && device->infiniband() == wanted.infiniband();
  });
}

void add(DeviceList& devices, const Interface& interface, const std::optional<InfinibandPort>& infiniband) {
  auto device =
      std::make_unique<const Device>(fmt::format("{}{}", kDeviceNamePrefix, devices.size()), interface, infiniband);
  if (!is_there(devices, *device)) devices.push_back(std::move(device));
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
    for (const auto* interface : choose_interfaces(*network, {}, missing)) add(devices, *interface, {});
  }
  for (const auto& declared : settings->devices) {
    for (const auto* interface : choose_interfaces(*network, {declared.interface}, missing)) {
      add(devices, *interface, declared.infiniband);
    }
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

Device::Device(std::string name, const Interface& interface, const std::optional<InfinibandPort>& infiniband)
    : name_(std::move(name)),
      interface_name_(interface.name),
      interface_index_(interface.index),
      guid_(guid_of(interface)),
      infiniband_(infiniband) {
  if (!infiniband_) return;
  if (infiniband_->guid == 0) infiniband_->guid = guid_of(interface, infiniband_->lid);
  guid_ = infiniband_->guid;
}

std::span<const std::unique_ptr<const Device>> device_list() noexcept {
  static auto& mutex = *new std::mutex;
  static auto& devices = *new std::vector<std::unique_ptr<const Device>>;
  const std::lock_guard guard(mutex);
  if (devices.empty()) devices = make_list();
  return devices;
}

}  // namespace verbena::device
