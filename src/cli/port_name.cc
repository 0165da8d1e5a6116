#include "cli/port_name.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace verbena::cli {

Result<PortName> parse_port_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  PortName name{.device = std::string(text.substr(0, slash))};
  if (slash == std::string_view::npos) return name;
  const std::string_view digits = text.substr(slash + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (name.device.empty() || !whole || number == 0 || number > std::numeric_limits<std::uint8_t>::max()) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no port of a device: write NAME, or NAME/PORT as in verbena0/2", text));
  }
  name.port = static_cast<std::uint8_t>(number);
  return name;
}

std::string to_text(const PortName& name) {
  return name.port == 0 ? name.device : fmt::format("{}/{}", name.device, name.port);
}

}  // namespace verbena::cli
