// A software RDMA device: an interface of this network namespace under an RDMA name. Identity only; what it does
// begins when a Context opens it.
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

#include "device/infiniband_port.h"
#include "device/network.h"

namespace verbena::device {

inline constexpr std::string_view kDeviceNamePrefix = "verbena";

class Device {
 public:
  // `infiniband`: as declared, where its port is one of InfiniBand.
  Device(std::string name, const Interface& interface, const std::optional<InfinibandPort>& infiniband = {});

  const std::string& name() const noexcept { return name_; }                      // "verbena0"
  const std::string& interface_name() const noexcept { return interface_name_; }  // "eth0", when the list was made
  unsigned interface_index() const noexcept { return interface_index_; }
  // Host order; never 0. EUI-64 of the interface; of an InfiniBand port as declared, or with the LID in its middle.
  std::uint64_t guid() const noexcept { return guid_; }
  // As declared, with its GUID; nothing for a device of Ethernet.
  const std::optional<InfinibandPort>& infiniband() const noexcept { return infiniband_; }

 private:
  std::string name_;
  std::string interface_name_;
  unsigned interface_index_;
  std::uint64_t guid_;
  std::optional<InfinibandPort> infiniband_;
};

// The devices that VERBENA_DEVICES asks for, made at the first call that finds any. Empty, with words in the log, where
// the settings or rtnetlink forbid.
std::span<const std::unique_ptr<const Device>> device_list() noexcept;

}  // namespace verbena::device
