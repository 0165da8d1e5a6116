// A port of a device as a user names it: "verbena0" for any of the device's, "verbena0/2" for the second. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verbena/result.h"

namespace verbena::cli {

struct PortName {
  std::string device{};   // empty: any
  std::uint8_t port = 0;  // 0: any

  bool names_device(std::string_view name) const noexcept { return device.empty() || device == name; }
  bool names_port(std::uint8_t number) const noexcept { return port == 0 || port == number; }

  friend bool operator==(const PortName&, const PortName&) = default;
};

// Empty text: any.
// Errors: kInvalidArgument where there is no device in front of the "/", or no number from 1 to 255 behind it.
Result<PortName> parse_port_name(std::string_view text);

// Whether the device has it cannot be known here.
std::string to_text(const PortName& name);

}  // namespace verbena::cli
