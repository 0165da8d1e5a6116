// A device as VERBENA_DEVICES declares it: its ports, each an interface and what the port on it is.
//
//     PORT[+PORT...]                                    port 1, port 2, ...
//
//     IFACE                                             Ethernet: RoCEv2
//     IFACE/link_layer=infiniband[/KEY=VALUE...]        InfiniBand; the keys are those of set_attribute()
//
// P_Keys have a plus sign between them too: what begins with a digit behind pkeys=VALUE is one more of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/infiniband_port.h"
#include "verbena/result.h"

namespace verbena::device {

struct PortDeclaration {
  std::string interface;
  std::optional<InfinibandPort> infiniband{};

  friend bool operator==(const PortDeclaration&, const PortDeclaration&) = default;
};

struct DeviceDeclaration {
  static constexpr std::size_t kMaxPorts = 8;

  std::vector<PortDeclaration> ports;  // one at least

  friend bool operator==(const DeviceDeclaration&, const DeviceDeclaration&) = default;
};

// A list with commas. kInvalidArgument names the part that is wrong.
Result<std::vector<DeviceDeclaration>> parse_declarations(std::string_view text);

}  // namespace verbena::device
