#include "device/device.h"

#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "device/environment.h"
#include "device/log.h"
#include "device/netlink.h"

namespace verbena::device {
namespace {

// EUI-64 of a MAC address, the universal bit flipped. Interfaces without one (lo) are told apart by their index.
std::uint64_t guid_of(const Interface& interface) noexcept {
  const auto& mac = interface.mac;
  const std::array<std::uint8_t, 8> eui{
      static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::uint64_t guid = 0;
  for (const auto byte : eui) guid = (guid << 8) | byte;
  return mac == decltype(interface.mac){} ? guid | interface.index : guid;
}

std::vector<std::unique_ptr<const Device>> make_list() {
  const auto& settings = environment();
  if (!settings) return {};
  auto netlink = Netlink::open();
  auto network = netlink ? (*netlink)->read() : Result<Network>(tl::make_unexpected(netlink.error()));
  if (!network) {
    log(Severity::kError, fmt::format("no devices: {}", network.error().message));
    return {};
  }
  std::vector<std::string> missing;
  std::vector<std::unique_ptr<const Device>> devices;
  for (const auto* interface : choose_interfaces(*network, settings->interfaces, missing)) {
    devices.push_back(
        std::make_unique<const Device>(fmt::format("{}{}", kDeviceNamePrefix, devices.size()), *interface));
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

Device::Device(std::string name, const Interface& interface)
    : name_(std::move(name)),
      interface_name_(interface.name),
      interface_index_(interface.index),
      guid_(guid_of(interface)) {}

std::span<const std::unique_ptr<const Device>> device_list() noexcept {
  static auto& mutex = *new std::mutex;
  static auto& devices = *new std::vector<std::unique_ptr<const Device>>;
  const std::lock_guard guard(mutex);
  if (devices.empty()) devices = make_list();
  return devices;
}

}  // namespace verbena::device
