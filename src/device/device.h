// A software RDMA device: an interface of this network namespace under an RDMA name. Identity only; what it does
// begins when a Context opens it.
//
// Thread-safety: immutable.
// Ownership:     the list lives until the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/network.h"

namespace verbena::device {

inline constexpr std::string_view kDeviceNamePrefix = "verbena";

class Device {
 public:
  Device(std::string name, const Interface& interface);

  const std::string& name() const noexcept { return name_; }                      // "verbena0"
  const std::string& interface_name() const noexcept { return interface_name_; }  // "eth0", when the list was made
  unsigned interface_index() const noexcept { return interface_index_; }
  std::uint64_t guid() const noexcept { return guid_; }  // EUI-64 of the interface, host order; never 0

 private:
  std::string name_;
  std::string interface_name_;
  unsigned interface_index_;
  std::uint64_t guid_;
};

// The devices that VERBENA_DEVICES asks for, made at the first call that finds any. Empty, with words in the log, where
// the settings or rtnetlink forbid.
std::span<const std::unique_ptr<const Device>> device_list() noexcept;

}  // namespace verbena::device
