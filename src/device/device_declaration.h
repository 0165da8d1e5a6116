// A device as VERBENA_DEVICES declares it: an interface, and what the port on it is.
//
//     IFACE                                             Ethernet: RoCEv2
//     IFACE/link_layer=infiniband[/KEY=VALUE...]        InfiniBand; the keys are those of set_attribute()
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/infiniband_port.h"
#include "verbena/result.h"

namespace verbena::device {

struct DeviceDeclaration {
  std::string interface;
  std::optional<InfinibandPort> infiniband{};

  friend bool operator==(const DeviceDeclaration&, const DeviceDeclaration&) = default;
};

// A list with commas. kInvalidArgument names the part that is wrong.
Result<std::vector<DeviceDeclaration>> parse_declarations(std::string_view text);

}  // namespace verbena::device
