#include "engine/port_view.h"

namespace verbena::engine {

std::string why_not(std::uint8_t asked, const PortView& port, std::string_view what) {
  const std::string number = "port " + std::to_string(asked);
  if (asked == 0 || asked > port.count) {
    return number + " does not exist; the device has " +
           (port.count == 1 ? "port 1" : "ports 1 to " + std::to_string(port.count));
  }
  return number + " is another than port " + std::to_string(port.number) + ", which " + std::string(what) + " is on";
}

}  // namespace verbena::engine
