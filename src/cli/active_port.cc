#include "cli/active_port.h"

#include <fmt/format.h>

namespace verbena::cli {

Result<PortView> active_port(const Context& context, std::uint8_t number) {
  const auto device = context.query_device();
  if (!device) return tl::make_unexpected(device.error());
  if (number == 0 || number > device->phys_port_cnt) {
    return failure(ErrorCode::kNotFound, fmt::format("{} has no port {}: its ports are 1 to {}", context.name(), number,
                                                     device->phys_port_cnt));
  }
  auto port = context.query_port(number);
  if (port && !port->active) {
    return failure(ErrorCode::kUnavailable,
                   fmt::format("{} port {} is {}; bring its interface up", context.name(), number, port->state));
  }
  return port;
}

}  // namespace verbena::cli
