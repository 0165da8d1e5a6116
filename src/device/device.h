// A software RDMA device: one interface of this network namespace, or several as its ports, under an RDMA name.
// Identity only; what it does begins when a Context opens it.
//
// Thread-safety: immutable.
// Ownership:     the list lives until the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/infiniband_port.h"
#include "device/network.h"

namespace verbena::device {

inline constexpr std::string_view kDeviceNamePrefix = "verbena";

// A port of a device, as it was declared.
struct DevicePort {
  // `declared`: where it is one of InfiniBand.
  explicit DevicePort(const Interface& interface, const std::optional<InfinibandPort>& declared = {});

  std::string interface_name;  // "eth0", when the list was made
  unsigned interface_index;
  // Host order; never 0. EUI-64 of the interface; of an InfiniBand port as declared, or with the LID in its middle.
  std::uint64_t guid;
  std::optional<InfinibandPort> infiniband;  // with its GUID; nothing for Ethernet
};

// The interface of the port, as it is now: the same, whatever its name, or where that is gone one of its name.
const Interface* find_interface(const Network& network, const DevicePort& port) noexcept;

inline constexpr std::uint8_t kFirstPort = 1;

class Device {
 public:
  // Requires: one port at least, DeviceDeclaration::kMaxPorts at most.
  Device(std::string name, std::vector<DevicePort> ports) : name_(std::move(name)), ports_(std::move(ports)) {}

  const std::string& name() const noexcept { return name_; }  // "verbena0"
  // Port 1 first.
  std::span<const DevicePort> ports() const noexcept { return ports_; }
  // Requires: the device has it.
  const DevicePort& port(std::uint8_t number) const noexcept { return ports_[number - kFirstPort]; }
  // "verbena0", and "verbena0/2" where there are several.
  std::string port_name(std::uint8_t number) const;
  // That of its first port.
  std::uint64_t guid() const noexcept { return ports_.front().guid; }

 private:
  std::string name_;
  std::vector<DevicePort> ports_;
};

// The devices that VERBENA_DEVICES asks for, made at the first call that finds any. Empty, with words in the log, where
// the settings or rtnetlink forbid.
std::span<const std::unique_ptr<const Device>> device_list() noexcept;

}  // namespace verbena::device
